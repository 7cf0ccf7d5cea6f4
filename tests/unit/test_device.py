"""Where and how precisely to compute."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.errors import raises_error

from dragoman import device
from dragoman.backends import threads
from dragoman.errors import Error


def test_auto_is_always_there() -> None:
    assert device.pick_device("auto").type in {"cpu", "cuda", "mps"}
    assert device.pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "error"),
    [("gpu", Error.UNKNOWN_NAME), ("cuda", Error.NO_DEVICE), ("cpu:foo", Error.WRONG_OPTION)],
)
def test_a_device_that_is_not_there_is_refused(name: str, error: Error, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with raises_error(error):
        device.pick_device(name)


def test_bf16_on_a_cpu_only_where_it_is_there_and_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(device, "cpu_capabilities", lambda: {"avx512_bf16": True})
    assert device.pick_precision("auto", cpu, d_model=128) == "bfloat16"
    assert device.pick_precision("auto", cpu, d_model=96) == "float32"
    assert device.pick_precision("float32", cpu, d_model=128) == "float32"
    monkeypatch.setattr(device, "cpu_capabilities", dict)
    assert device.pick_precision("auto", cpu, d_model=128) == "float32"
    assert device.pick_precision("bfloat16", cpu, d_model=16) == "bfloat16"


@pytest.mark.parametrize(
    ("has_bf16", "capability", "precision"),
    [(True, (8, 0), "bfloat16"), (False, (7, 5), "float16"), (False, (7, 0), "float16"), (False, (6, 1), "float32")],
)
def test_the_precision_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, has_bf16: bool, capability: tuple[int, int], precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: has_bf16)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert device.pick_precision("auto", torch.device("cuda"), d_model=512) == precision
    assert device.pick_precision("float16", torch.device("cuda"), d_model=512) == "float16"


@pytest.mark.skipif(sys.platform != "linux" or not device.cpu_has_bfloat16(), reason="bf16 products, and /proc")
def test_products_of_many_shapes_leave_little_behind() -> None:
    def multiply(sizes: range) -> None:
        for size in sizes:
            torch.ones(size, 64, dtype=torch.bfloat16) @ torch.ones(64, 64, dtype=torch.bfloat16)

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    multiply(range(100, 200))
    before = resident_bytes()
    multiply(range(200, 800))
    assert resident_bytes() - before < 50e6  # 600 kept kernels take 400 MB


def test_in_a_container_remembered_files_are_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (
        ("max", "1000\n"),
        ("current", "900\n"),
        ("stat", "anon 200\nfile 700\nactive_anon 200\ninactive_file 400\nactive_file 300\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text, encoding="ascii")
    monkeypatch.setattr(device, "CGROUP", tmp_path)
    assert device.available_bytes(torch.device("cpu")) == 800
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert device.available_bytes(torch.device("cpu")) != 800


@pytest.mark.parametrize(
    ("loadavg", "policy"),
    [("0.10 0.10 0.10 1/100 999\n", None), ("0.10 0.10 0.10 2/100 999\n", "PASSIVE"), ("nothing\n", None)],
)
def test_threads_sleep_while_they_wait_where_another_program_is_busy(
    loadavg: str, policy: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loadavg").write_text(loadavg, encoding="ascii")
    monkeypatch.setattr(threads, "LOADAVG", tmp_path / "loadavg")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv("OMP_WAIT_POLICY", "")  # so that it is put back in the end
    monkeypatch.delenv("OMP_WAIT_POLICY")
    threads.wait_passively_if_busy()
    assert os.environ.get("OMP_WAIT_POLICY") == policy
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    threads.wait_passively_if_busy()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def test_the_policy_is_chosen_before_pytorch_is_loaded() -> None:
    code = "import dragoman.cli.main, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("hidden_numbers", "asked", "count"), [(4096, None, 1), (4097, None, 2), (4096, "2", 2)])
def test_small_batches_have_one_thread(
    hidden_numbers: int, asked: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    torch.set_num_threads(2)
    try:
        with device.threads_for(hidden_numbers):
            assert torch.get_num_threads() == count
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_attention_by_cudnn_is_off_on_a_gpu_where_it_would_plan_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        assert device.pick_device("cpu").type == "cpu"
        assert torch.backends.cuda.cudnn_sdp_enabled()
        assert device.pick_device("auto").type == "cuda"
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
