# %% [markdown]
# # 0. Before you begin (开始之前)
#
# *What does one need to know, and where does the road lead?*
#
# The book goes from one sentence to a translator that is measured on texts that it has never seen. It needs Python, and
# the multiplication of matrices.

# %% [markdown] lang="zh"
# # 0. 开始之前
#
# *需要先知道什么？这条路通向哪里？*
#
# 本书从一个句子讲到一个翻译系统，它的质量在从未见过的文本上测量。需要会 Python，也需要懂矩阵乘法。
