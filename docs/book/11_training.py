# %% [markdown]
# # 11. Training (训练)
#
# *How large should a step be, and how sure should a model become?*
#
# Time: about 40 minutes to read and try; the cells run in 30 seconds on one core.
#
# You need the loss of chapter 6 and the whole Transformer of chapter 10.

# %% [markdown] lang="zh"
# # 11. 训练
#
# *每一步应当走多大？模型应当有多大把握？*
#
# 时间：阅读和动手约 40 分钟；全部代码在一个核上运行 30 秒。
#
# 需要第 6 章的损失和第 10 章的整个 Transformer。

# %% [markdown]
# ## A naive try: choose a rate and keep it
#
# The gradient (梯度) says in which direction the loss falls. The learning rate (学习率) says how far to go. The naive
# way is to choose one rate and to keep it. Here are three rates for the Transformer of chapter 10 and the sentence
# "ich möchte ein bier": forty steps each.

# %% [markdown] lang="zh"
# ## 朴素的尝试：选定一个学习率，一直不变
#
# 梯度指出损失沿哪个方向下降，学习率决定走多远。朴素的做法是选定一个学习率，一直用下去。下面对第 10 章的 Transformer 和句子
# “ich möchte ein bier” 试三个学习率，各走四十步。

# %%
import torch
from torch import nn

from dragoman.learn import mini_solution
from dragoman.learn.mini_solution import Transformer, batch, loss

sentence = batch([([4, 5, 6, 7], [4, 5, 6, 7])])  # ich möchte ein bier, i want a beer


def losses_at(constant, steps=40):
    torch.manual_seed(1)
    model = Transformer(src_vocab=8, tgt_vocab=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=constant, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for _ in range(steps):
        src, tgt_in, tgt_out = sentence
        value = loss(model(src, tgt_in), tgt_out)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


constants = {rate: losses_at(rate) for rate in (0.00001, 0.001, 1.0)}
for constant, losses in constants.items():
    print(f"rate {constant:<7g}", " ".join(f"{value:7.2f}" for value in losses[::6]))

# %% [markdown]
# The smallest rate has learnt hardly anything after forty steps. With the largest one the loss is larger at the end than
# at the start. Only the middle one learns the sentence. You would have had to know it before.

# %% [markdown] lang="zh"
# 最小的学习率走完四十步几乎什么也没学到；最大的学习率使最后的损失比开始时还大；只有中间的学会了这个句子。可是事先谁知道该选它呢？

# %% [check]
ends = {constant: losses[-1] for constant, losses in constants.items()}
assert (
    ends[0.00001] > 1.3
)  # it began at 2.5; a model that knows the five tokens, not their places, has ln 5 = 1.61
assert ends[1.0] > constants[1.0][0]
assert ends[0.001] < 0.01

# %% [markdown]
# ## The idea in one sentence
#
# **Begin with tiny steps while the gradients mean little, go up to the largest rate, and then go down again: the rate is
# a function of the step.**
#
# The paper (Vaswani et al. 2017, equation 3) writes this function so:
#
# $$\text{rate} = d_{model}^{-0.5} \min(\text{step}^{-0.5},\ \text{step} \cdot \text{warmup}^{-1.5})$$
#
# The first steps are the warm-up (预热). Many call this schedule "Noam", after one of its authors. Here is the schedule,
# and the loop of training that uses it. This is all that training is.

# %% [markdown] lang="zh"
# ## 一句话说清思想
#
# **开始时梯度还说明不了什么，步子要极小；然后升到最大的学习率，再慢慢降下来：学习率是步数的函数。**
#
# 论文（Vaswani 等 2017，式 3）把这个函数写成：
#
# $$\text{rate} = d_{model}^{-0.5} \min(\text{step}^{-0.5},\ \text{step} \cdot \text{warmup}^{-1.5})$$
#
# 最初的若干步叫预热。人们常以作者之一的名字称它为 “Noam” 调度。下面是这个调度，以及用到它的训练循环。训练的全部内容就是这些。


# %%
def rate(step, d_model, warmup=400):
    """Compute the paper's learning rate (equation 3) of a step, from 1: up for `warmup` steps, then down."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def train(model, batches, steps, warmup=400):
    """Train on (src, tgt_in, tgt_out), batch after batch and again from the first: the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    model.train()
    losses = []
    for step in range(1, steps + 1):
        src, tgt_in, tgt_out = batches[(step - 1) % len(batches)]
        optimizer.param_groups[0]["lr"] = rate(step, model.d_model, warmup)
        value = loss(model(src, tgt_in), tgt_out)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


# %% [markdown]
# Is it what Dragoman does? First the rates, then the losses of 20 steps on the sentence: once by your loop, once by
# Dragoman's own step, on two models with the same weights at the start.
#
# > code: training/schedules.py: NoamConfig.rate_at
#
# > code: training/step.py: TrainingStep.take

# %% [markdown] lang="zh"
# Dragoman 也是这样做的吗？先比较学习率，再比较在这个句子上走 20 步的损失：一次用你的循环，一次用 Dragoman 自己的训练步，两个模型开始时权重相同。
#
# > code: training/schedules.py: NoamConfig.rate_at
#
# > code: training/step.py: TrainingStep.take

# %%
from dragoman.config import parse
from dragoman.learn.laboratory import CPU, ToyTask
from dragoman.training.config import TrainingConfig
from dragoman.training.loss import token_loss
from dragoman.training.schedules import NoamConfig
from dragoman.training.step import TrainingStep

noam = NoamConfig(warmup_steps=400)
ours = torch.tensor([rate(step, 512) for step in range(1, 2001)])
theirs = torch.tensor([noam.rate_at(step, 2000, 512) for step in range(1, 2001)])
print("the rates are equal: ", torch.allclose(ours, theirs))


class OneSentence(ToyTask):
    """The sentence as a task of Dragoman's, for a model that makes its masks itself."""

    def loss(self, model, batch, label_smoothing):
        logits = model(batch.src, batch.tgt_in)
        summed = token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing)
        return summed, batch.num_tokens, batch.num_tokens


torch.manual_seed(1)
model = Transformer(8, 8)
torch.manual_seed(1)
same_model = Transformer(8, 8)
by_hand = train(model, [sentence], steps=20, warmup=40)

settings = parse(TrainingConfig, {"label_smoothing": 0.0, "clip_norm": 0.0, "compile": "none"})
task = OneSentence([([4, 5, 6, 7], [4, 5, 6, 7])], batch_size=1)
step_of_dragoman = TrainingStep(settings, same_model, task, device=CPU, precision="float32", seed=1)
by_dragoman = [float(step_of_dragoman.take(n, rate(n, 64, 40))[0]) for n in range(1, 21)]
both = torch.tensor([by_hand, by_dragoman])
print("the losses are equal:", torch.allclose(both[0], both[1], atol=1e-3))
print(" ".join(f"{value:.2f}" for value in by_hand))

# %% [check]
assert torch.allclose(ours, theirs)
assert torch.allclose(both[0], both[1], atol=1e-3)
assert [rate(n, 64, 40) for n in (1, 39, 40, 41)] == [
    mini_solution.rate(n, 64, 40) for n in (1, 39, 40, 41)
]
torch.manual_seed(1)
assert mini_solution.train(Transformer(8, 8), [sentence], steps=20, warmup=40) == by_hand
assert by_hand[-1] < 0.05

# %%
from dragoman.analysis.schedules import noam_curves, other_curves, plateau_curve, schedules_figure
from dragoman.learn.chapter import show

others = {**other_curves(1e-3, 2000, 20000), "plateau": plateau_curve(1e-3, 2000, 20000)}
show(
    schedules_figure(noam_curves([256, 512], [4000, 8000], 20000), others, 2000),
    "schedules",
    "Learning rates by step. Noam's rises in a straight line and falls with the root of the step, higher for a smaller "
    "model or a shorter warm-up; beside it the other schedules.",
)

# %% [markdown]
# Look at: the left panel, at the dots. Each dot is the end of a warm-up. Before it the line is straight. After it the
# rate falls with the root of the step.
#
# ## What the output says
#
# - In the warm-up the second step has twice the rate of the first.
# - At the end of the warm-up the rate is largest.
# - Four times as many steps as the warm-up give half of the largest rate.
# - A larger model has a smaller rate at each step.
#
# At step 0 the formula has no value: steps count from 1. In the right panel, `plateau` is the schedule that looks at the
# validation loss (验证损失): it goes down when nothing has got better for some validations. You choose it with
# `training.schedule.type`.

# %% [markdown] lang="zh"
# 看哪里：左图中的圆点。每个圆点是预热结束的地方。圆点之前是直线，圆点之后学习率按步数的平方根下降。
#
# ## 输出说明了什么
#
# - 预热时第二步的学习率是第一步的两倍。
# - 预热结束时学习率最大。
# - 步数为预热步数的四倍时，学习率是最大值的一半。
# - 模型越大，每一步的学习率越小。
#
# 第 0 步时公式没有值：步数从 1 数起。右图中的 `plateau` 会看验证损失：连续几次验证都没有变好，学习率就下降。用
# `training.schedule.type` 选择调度。

# %% [check]
rates = {step: rate(step, 512, 4000) for step in (1, 2, 3999, 4000, 4001, 16000)}
assert abs(rates[2] / rates[1] - 2) < 1e-9
assert max(rates.values()) == rates[4000]
assert abs(rates[4000] / rates[16000] - 2) < 1e-9
assert all(rate(step, 512) < rate(step, 256) for step in (1, 400, 5000))
steps, drawn = noam_curves([512], [400], 2000)[512, 400]
assert torch.allclose(torch.tensor(drawn), ours[torch.tensor(steps) - 1])

# %% [markdown]
# ## Does the warm-up matter?
#
# For the small model and one sentence a constant rate of 0.001 was enough. A deep model with the norm after each addition
# (post-norm, chapter 9) is another matter. Here six layers on each side learn to reverse sequences, once with a warm-up of
# 100 steps and once without one. The largest rate is the same.

# %% [markdown] lang="zh"
# ## 预热重要吗？
#
# 对小模型和一个句子，不变的学习率 0.001 就够了。规范化放在相加之后的深层模型（post-norm，第 9 章）就不同了。下面两侧各六层的模型学习把序列反过来，
# 一次预热 100 步，一次不预热，最大的学习率相同。

# %%
from dragoman.learn import laboratory

deep = {"norm_placement": "post", "num_encoder_layers": 6, "num_decoder_layers": 6}
deep_losses = {}
for name, warmup in (("warm-up of 100 steps", 100), ("no warm-up", 0)):
    schedule = {"type": "linear", "lr": 4e-3, "warmup_steps": warmup}
    trained = laboratory.train(1, steps=150, training={"schedule": schedule}, **deep)
    deep_losses[name] = trained.losses
    print(f"{name:<21}", f"mean loss of the last 20 steps: {sum(trained.losses[-20:]) / 20:.2f}")

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7, 3.2, "Six post-norm layers, reversing")
axes = figure.subplots()
for name, losses in deep_losses.items():
    axes.plot(range(1, len(losses) + 1), losses, label=name)
axes.set_xlabel("step")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(
    figure,
    "warm-up",
    "Loss by step of the same deep model with a warm-up and without one: the one with a warm-up is lower at the end.",
)

# %% [markdown]
# Look at: the right end. With the warm-up the loss is lower there.

# %% [markdown] lang="zh"
# 看哪里：右端。有预热的损失在那里更低。

# %% [check]
ends = {name: sum(losses[-20:]) / 20 for name, losses in deep_losses.items()}
assert ends["warm-up of 100 steps"] + 0.3 < ends["no warm-up"]

# %% [markdown]
# ## Your own Transformer trains
#
# From chapter 1 on your file `mini_transformer.py` has grown. With `rate` and `train` it learns. Here it reads six
# symbols or fewer and learns to say them in reverse, 48 sequences in a batch. In this chapter the file is the solution
# that comes with Dragoman; yours does the same.

# %% [markdown] lang="zh"
# ## 你自己的 Transformer 开始训练
#
# 从第 1 章起，你的文件 `mini_transformer.py` 一直在成长。有了 `rate` 和 `train`，它就能学习。这里它读入至多六个符号，学习把它们反过来说出，
# 每个批次 48 个序列。本章用的是 Dragoman 附带的解答；你的文件做同样的事。

# %%
pairs = laboratory.pairs("reverse", "train", 48 * 250)
batches = [batch(pairs[start : start + 48]) for start in range(0, len(pairs), 48)]
torch.manual_seed(1)
mini = Transformer(laboratory.VOCAB, laboratory.VOCAB, d_model=48, d_ff=96)
mini_losses = train(mini, batches, steps=250, warmup=60)

unseen = laboratory.pairs("reverse", "test", 100)
right = sum(mini_solution.greedy(mini, batch([pair])[0], 8) == pair[1] for pair in unseen)
print("loss:", " ".join(f"{value:.2f}" for value in mini_losses[::25]), f"{mini_losses[-1]:.2f}")
print(f"{right} of 100 sequences that it has never seen are right")

# %% [check]
seen = {tuple(src) for src, _ in pairs}
assert not any(tuple(src) in seen for src, _ in unseen)  # "that it has never seen"
assert right >= 60
assert mini_losses[-1] < 0.5 < mini_losses[0]

# %% [markdown]
# ## Label smoothing (标签平滑)
#
# So far the model was asked to give the right token a probability of 1. No finite logits do that, so it is driven to be
# more and more certain. Szegedy et al. 2016 ask for less: $1 - \epsilon$ for the right token, and $\epsilon$ is shared by
# the whole vocabulary. For the second target of our sentence, `want` of the eight entries, with $\epsilon = 0.4$:
#
# > code: training/loss.py: textbook_loss

# %% [markdown] lang="zh"
# ## 标签平滑
#
# 到现在为止，我们要求模型给正确词元的概率是 1。有限的 logits 做不到，于是模型被逼得越来越有把握。Szegedy 等 2016 要求得少一些：正确的词元占
# $1 - \epsilon$，剩下的 $\epsilon$ 由整个词表分享。对我们句子的第二个目标词元，即八个条目中的 `want`，取 $\epsilon = 0.4$：
#
# > code: training/loss.py: textbook_loss

# %%
from dragoman.learn.one_sentence import TGT_VOCAB

epsilon = 0.4
hard = torch.zeros(8)
hard[TGT_VOCAB.index("want")] = 1
smooth = (1 - epsilon) * hard + epsilon / 8
for name, target in (("hard", hard), ("smooth", smooth)):
    shares = zip(TGT_VOCAB, target.tolist(), strict=True)
    print(f"{name:<7}", "  ".join(f"{word} {share:.2f}" for word, share in shares))

log_probs = torch.randn(8, generator=torch.manual_seed(1)).log_softmax(-1)
by_pytorch = nn.functional.cross_entropy(
    log_probs[None], torch.tensor([5]), label_smoothing=epsilon
)
by_dragoman = token_loss(
    log_probs[None, None], torch.tensor([[5]]), torch.tensor([[True]]), epsilon
)
print(
    "equal:",
    torch.allclose(-(smooth * log_probs).sum(), by_pytorch),
    torch.allclose(by_dragoman, by_pytorch),
)

# %% [check]
assert torch.allclose(-(smooth * log_probs).sum(), by_pytorch)
assert torch.allclose(by_dragoman, by_pytorch)
assert smooth.sum().item() == 1.0 or abs(smooth.sum().item() - 1) < 1e-6

# %% [markdown]
# Other texts share $\epsilon$ in another way. The Annotated Transformer of 2018 and 2022 gives $\epsilon / (V - 2)$ to
# each entry but the right one and padding. Its example is `LabelSmoothing(5, 0, 0.4)`: five entries, padding is entry 0.
# Both are shown for the target 2. The last row is that of a padded target: it is all zero, because nothing is asked for
# there. Dragoman comes to the same in another way: the mask (掩码) takes such a position out of the loss.
#
# > code: analysis/printed.py: without_pad

# %% [markdown] lang="zh"
# 别的文本用另一种方式分享 $\epsilon$。2018 年和 2022 年的 Annotated Transformer 给正确词元和填充以外的每个条目 $\epsilon / (V - 2)$。它的例子是
# `LabelSmoothing(5, 0, 0.4)`：五个条目，填充是条目 0。下面给出目标为 2 时的两种形式。最后一行的目标是填充：那一行全为零，因为那里什么也不要求。
# Dragoman 用另一种方式得到同样的结果：掩码把这样的位置排除在损失之外。
#
# > code: analysis/printed.py: without_pad

# %%
from dragoman.analysis.printed import smoothing_text

print(smoothing_text([0.4], vocab_size=5, target=2))

# %% [check]
from dragoman.analysis.printed import without_pad

assert without_pad(5, 0, 0.4).tolist() == [0.0] * 5
assert without_pad(5, 2, 0.4).round(4).tolist() == [0.0, 0.1333, 0.6, 0.1333, 0.1333]
logits = torch.randn(1, 2, 5, requires_grad=True)
masked = token_loss(logits, torch.tensor([[2, 0]]), torch.tensor([[True, False]]), 0.4)
[gradient] = torch.autograd.grad(masked, logits)
assert (
    gradient[0, 1].abs().max() == 0 < gradient[0, 0].abs().max()
)  # a padded position asks for nothing here too

# %%
from dragoman.analysis.smoothing import smoothing_figure

show(
    smoothing_figure([0.0, 0.1, 0.2, 0.4]),
    "smoothing",
    "Loss by the probability of the right token for four values of epsilon: without smoothing it falls to the end, with "
    "smoothing it has a lowest point and rises again.",
)

# %% [markdown]
# Look at: the right panel, at the dots. Without smoothing the loss falls to the end. With smoothing it has a lowest point
# (the dot), and a model that is more certain than that pays for it.

# %% [markdown] lang="zh"
# 看哪里：右图中的圆点。没有平滑，损失一直下降。有了平滑，损失有一个最低点（圆点），比那更有把握的模型要付出代价。

# %% [check]
from dragoman.analysis.smoothing import loss_of_confidence

plain = loss_of_confidence([0.5, 0.9, 0.99, 0.9999], 8000, 0.0)
smoothed = loss_of_confidence([0.5, 0.9, 0.99, 0.9999], 8000, 0.1)
assert plain == sorted(plain, reverse=True)
assert min(smoothed) == smoothed[1]

# %% [markdown]
# ## What a step is made of
#
# Forward, backward, cut the gradient, update. Two of these are easy to get wrong.
#
# **Clear.** PyTorch adds new gradients to the old ones. `zero_grad` clears them. Without it each step also goes where all
# earlier steps went.
#
# **Clip (梯度裁剪).** One strange batch can have a huge gradient. Where the norm of the whole gradient is larger than a
# limit, the gradient is divided by its norm and multiplied by the limit. Dragoman's limit is `training.clip_norm`, 1.
#
# > code: training/step.py: TrainingStep.gradients

# %% [markdown] lang="zh"
# ## 一步由什么组成
#
# 前向、反向、裁剪梯度、更新。其中两件事容易做错。
#
# **清零。** PyTorch 把新的梯度加到旧的梯度上，`zero_grad` 把旧的清零。不清零，每一步都还会朝以前所有步的方向走。
#
# **梯度裁剪。** 一个反常的批次可能有极大的梯度。整个梯度的范数超过上限时，把梯度除以它的范数，再乘以上限。Dragoman 的上限是
# `training.clip_norm`，默认为 1。
#
# > code: training/step.py: TrainingStep.gradients


# %%
def losses_with(clear, steps=60):
    torch.manual_seed(1)
    model = Transformer(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    src, tgt_in, tgt_out = sentence
    losses = []
    for _ in range(steps):
        value = loss(model(src, tgt_in), tgt_out)
        if clear:
            optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


cleared, not_cleared = losses_with(clear=True), losses_with(clear=False)
print("cleared:    ", " ".join(f"{value:.2f}" for value in cleared[::6]))
print("not cleared:", " ".join(f"{value:.2f}" for value in not_cleared[::6]))

torch.manual_seed(1)
model = Transformer(8, 8)
loss(model(*sentence[:2]), sentence[2]).backward()
norms = [float(nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)) for _ in range(2)]
print(f"norm of the first gradient: {norms[0]:.2f}, clipped: {norms[1]:.2f}")

# %% [markdown]
# - Cleared, the loss only falls.
# - Not cleared, it falls more slowly, and later it rises again.
# - The first gradient is longer than 1. Clipped, it is as long as 1.

# %% [markdown] lang="zh"
# - 清零时，损失只降不升。
# - 不清零时，损失降得更慢，后来又升上去。
# - 第一个梯度的范数大于 1，裁剪之后等于 1。

# %% [check]
from itertools import pairwise

assert all(after < before for before, after in pairwise(cleared[::6]))
assert not_cleared[6] > 3 * cleared[6]
assert max(not_cleared[24:36:6]) > 2 * min(not_cleared[:24:6])
assert norms[0] > 1 > norms[1] > 0.999

# %% [markdown]
# ## Batches under a budget of tokens
#
# Sentences of about the same length go together, so that little of a batch is padding (填充). The order of the batches is
# shuffled anew in each epoch (轮).
#
# > code: data/batching.py: BatchPlan

# %% [markdown] lang="zh"
# ## 按词元数限制的批次
#
# 长度相近的句子放在一起，批次中的填充就很少。每一轮都重新打乱批次的顺序。
#
# > code: data/batching.py: BatchPlan

# %%
from dragoman.data.batching import BatchPlan

lengths = [3 + 7 * n % 29 for n in range(600)]
plan = BatchPlan(lengths, lengths, batch_tokens=512)
print(f"by length: {plan.num_batches} batches, {plan.fill:.1%} of their positions are real tokens")
mixed = sum(lengths) + len(lengths)
widest = [max(lengths[start : start + 24]) + 1 for start in range(0, 600, 24)]
fill_in_order = mixed / sum(24 * width for width in widest)
print(f"in the order of the text: {fill_in_order:.1%}")

# %% [check]
assert plan.fill > 0.95 > 0.7 > fill_in_order

# %% [markdown]
# ## Three lines to keep
#
# - The rate is a function of the step: up in the warm-up, then down.
# - Label smoothing asks for less than certainty; padding asks for nothing.
# - A step is: clear, forward, backward, clip, update.
#
# ## Exercises
#
# `dragoman learn 11` writes the file for your answers, `dragoman learn check 11` grades them, and `--hint NAME` gives a
# hint.
#
# - Predict: `predict_rates`, rates before and after the warm-up.
# - Fill: `clip`, gradients cut to a norm.
# - Write: `noam`, the paper's learning rate; `smooth`, a smoothed target; `smooth_without_pad`, a smoothed target without
#   padding.
# - Experiment: `schedule`, a schedule that reaches a low loss in 200 noisy steps.
#
# For your own Transformer: `mini_transformer.py`, pieces `rate` and `train`.
#
# Bugs to hunt: `dragoman learn bug 3`, `27`, `28`, `29`, `36`.
#
# ## Read on
#
# - Vaswani et al. 2017, "Attention Is All You Need", sections 5.3 and 5.4: the schedule, dropout and label smoothing.
# - Our page "If you come from other notes", `docs/other-notes.md`, section "Training and text": who counts steps from 0,
#   and both ways to smooth.

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - 学习率是步数的函数：预热时上升，然后下降。
# - 标签平滑不要求完全有把握；填充什么也不要求。
# - 一步是：清零、前向、反向、裁剪、更新。
#
# ## 练习
#
# `dragoman learn 11` 写出供你作答的文件，`dragoman learn check 11` 评分，`--hint NAME` 给出提示。
#
# - 预测：`predict_rates`，预热前后的学习率。
# - 填空：`clip`，把梯度裁剪到给定的范数。
# - 编写：`noam`，论文的学习率；`smooth`，平滑后的目标分布；`smooth_without_pad`，不含填充的平滑目标分布。
# - 实验：`schedule`，在 200 个带噪声的步内达到低损失的学习率。
#
# 你自己的 Transformer：`mini_transformer.py` 中的 `rate` 和 `train`。
#
# 找错误：`dragoman learn bug 3`、`27`、`28`、`29`、`36`。
#
# ## 延伸阅读
#
# - Vaswani 等 2017，“Attention Is All You Need”，第 5.3 和 5.4 节：学习率调度、暂退法和标签平滑。
# - 本项目的页面 “If you come from other notes”，`docs/other-notes.md` 的 “Training and text” 一节：谁从 0 数步数，以及两种平滑的方式。
