"""C++ extensions in the styles that people and models write, each with what it should compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

X = torch.linspace(-2, 2, 60).view(6, 10)


class Example(NamedTuple):
    """A source, the functions it binds (none if it binds them itself), a call and its result in torch."""

    source: str
    functions: tuple[str, ...]
    call: Callable[[object], object]
    expected: object
    cflags: tuple[str, ...] = ()


def _double(body: str) -> str:
    return "torch::Tensor f(torch::Tensor x) { auto y = torch::empty_like(x); " + body + " return y; }"


LOOP = "const float* a = x.data_ptr<float>(); float* b = y.data_ptr<float>(); int64_t n = x.numel();"

EXAMPLES = {
    "plain_loop": Example(
        _double(LOOP + "for (int64_t i = 0; i < n; ++i) b[i] = 2 * a[i];"), ("f",), lambda m: m.f(X), 2 * X
    ),
    "openmp_simd": Example(
        _double(LOOP + "\n#pragma omp parallel for simd\nfor (int64_t i = 0; i < n; ++i) b[i] = 2 * a[i];"),
        ("f",),
        lambda m: m.f(X),
        2 * X,
        ("-O3", "", "-march=native -fopenmp", "-ffast-math"),
    ),
    "own_includes_and_std": Example(
        "#include <torch/extension.h>\n#include <vector>\n#include <cmath>\n#include <omp.h>\n"
        + _double(LOOP + "for (int64_t i = 0; i < n; ++i) b[i] = std::exp(std::max(a[i], 0.f));"),
        ("f",),
        lambda m: m.f(X),
        X.relu().exp(),
    ),
    "pybind_module": Example(
        "#include <torch/extension.h>\nint64_t f(int64_t a, int64_t b) { return a - b; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.doc() = "x"; '
        'm.def("f", &f, "subtracts", py::arg("a"), py::arg("b") = 5); }',
        (),
        lambda m: (m.f(9), m.f(b=1, a=3), m.f.__doc__),
        (4, 2, "subtracts"),
    ),
    "lambda_in_module": Example(
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](double a) { return a / 2; }); }',
        (),
        lambda m: m.f(3),
        1.5,
    ),
    "dispatch_on_type": Example(
        "template <typename T> void run(const T* a, T* b, int64_t n) { "
        "for (int64_t i = 0; i < n; ++i) b[i] = a[i] + a[i]; }\n"
        + _double(
            'AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "f", ([&] { '
            "run<scalar_t>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel()); }));"
        ),
        ("f",),
        lambda m: [m.f(X.to(t)).double() for t in (torch.float64, torch.bfloat16, torch.float16)],
        [2 * X.to(t).double() for t in (torch.float64, torch.bfloat16, torch.float16)],
    ),
    "dispatch_on_old_type": Example(
        _double(
            'AT_DISPATCH_ALL_TYPES(x.type(), "f", [&] { y.data_ptr<scalar_t>()[0] = x.data_ptr<scalar_t>()[0]; });'
        ),
        ("f",),
        lambda m: m.f(torch.tensor([7])),
        torch.tensor([7]),
    ),
    "options_chain": Example(
        "torch::Tensor f(torch::Tensor x) { auto o = torch::TensorOptions().dtype(torch::kFloat64).device(x.device());"
        " return torch::full({2, x.size(1)}, 1.5, o); }",
        ("f",),
        lambda m: m.f(X),
        torch.full((2, 10), 1.5, dtype=torch.float64),
    ),
    "options_of_another_tensor": Example(
        "torch::Tensor f(const torch::Tensor& x) { return torch::zeros({x.size(0)}, x.options().dtype(at::kLong)); }",
        ("f",),
        lambda m: m.f(X),
        torch.zeros(6, dtype=torch.int64),
    ),
    "sizes_as_vector": Example(
        "torch::Tensor f(torch::Tensor x) { std::vector<int64_t> s = x.sizes().vec(); s.back() = 3; "
        "return torch::ones(s, torch::kInt32); }",
        ("f",),
        lambda m: m.f(X),
        torch.ones(6, 3, dtype=torch.int32),
    ),
    "accessors": Example(
        "torch::Tensor f(torch::Tensor x) { auto y = torch::zeros_like(x); auto a = x.accessor<float, 2>(); "
        "auto b = y.packed_accessor32<float, 2, torch::RestrictPtrTraits>(); "
        "for (int i = 0; i < a.size(0); ++i) for (int j = 0; j < a.size(1); ++j) b[i][j] = a[i][j]; return y; }",
        ("f",),
        lambda m: m.f(X.t()),
        X.t().contiguous(),
    ),
    "views": Example(
        "torch::Tensor f(torch::Tensor x) { return x.transpose(0, 1).contiguous().view({-1}).slice(0, 2, 9, 3)"
        ".unsqueeze(0).expand({2, 3}).clone()[1]; }",
        ("f",),
        lambda m: m.f(X),
        X.t().reshape(-1)[2:9:3],
    ),
    "in_place": Example(
        "void f(torch::Tensor x) { x.fill_(3).narrow(0, 0, 1).zero_(); }",
        ("f",),
        lambda m: (lambda t: (m.f(t), t)[1])(torch.ones(3)),
        torch.tensor([0.0, 3, 3]),
    ),
    "optional_and_list_arguments": Example(
        "double f(std::vector<torch::Tensor> xs, c10::optional<torch::Tensor> bias, at::IntArrayRef sizes, bool flag, "
        "const std::string& name) { return xs.size() * 1000 + (bias.has_value() ? 100 : 0) + sizes.size() * 10 + flag"
        " + name.size(); }",
        ("f",),
        lambda m: (m.f([X, X], None, [1, 2], True, ""), m.f([], X, (3,), False, "ab")),
        (2021.0, 112.0),
    ),
    "tuple_result": Example(
        "std::tuple<torch::Tensor, int> f(torch::Tensor x) { return {x.contiguous(), (int)x.dim()}; }",
        ("f",),
        lambda m: m.f(X),
        (X, 2),
    ),
    "vector_result": Example(
        "std::vector<at::Tensor> f(at::Tensor x) { return {x, at::empty({0}, x.options())}; }",
        ("f",),
        lambda m: [t.shape for t in m.f(X)],
        [X.shape, torch.Size([0])],
    ),
    "scalar_item": Example(
        "float f(torch::Tensor x) { return x.select(0, 1)[2].item<float>(); }", ("f",), lambda m: m.f(X), float(X[1, 2])
    ),
    "checks_with_parts": Example(
        "#define CHECK_INPUT(x) TORCH_CHECK(x.is_contiguous() && !x.is_cuda(), "
        '#x " of ", x.sizes(), " is ", x.dtype())\n'
        "int64_t f(torch::Tensor x) { CHECK_INPUT(x); TORCH_CHECK(x.dtype() == torch::kFloat32); return x.numel(); }",
        ("f",),
        lambda m: m.f(X),
        60,
    ),
    "parallel_for": Example(
        _double(
            LOOP
            + "at::parallel_for(0, n, 7, [&](int64_t s, int64_t e) { for (auto i = s; i < e; ++i) b[i] = -a[i]; });"
        ),
        ("f",),
        lambda m: m.f(X),
        -X,
    ),
    "tensor_of_values": Example(
        "torch::Tensor f() { return torch::tensor({1.5f, 2.5f}); }", ("f",), lambda m: m.f(), torch.tensor([1.5, 2.5])
    ),
    "half_arithmetic": Example(
        "float f() { at::Half h(1.0009765625f); c10::BFloat16 b = 3.14159f; h += 1; "
        "return (float)h * 1000 + float(b); }",
        ("f",),
        lambda m: m.f(),
        2000 + float(torch.tensor(3.14159).bfloat16()),
    ),
    "undefined_tensor": Example(
        "bool f(torch::Tensor x) { torch::Tensor y; return x.defined() && !y.defined(); }",
        ("f",),
        lambda m: m.f(X),
        True,
    ),
}

WRONG_CALLS = {
    "not a tensor": ("int64_t f(torch::Tensor x) { return x.numel(); }", lambda m: m.f(3), TypeError, "torch.Tensor"),
    "too many": ("int64_t f(int64_t x) { return x; }", lambda m: m.f(1, 2), TypeError, "takes 1 arguments, 2 given"),
    "too few": ("int64_t f(int64_t x) { return x; }", lambda m: m.f(), TypeError, "takes 1 arguments, 0 given"),
    "wrong dtype": (
        "void f(torch::Tensor x) { x.data_ptr<float>(); }",
        lambda m: m.f(X.double()),
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    "dimension": ("int64_t f(torch::Tensor x) { return x.size(5); }", lambda m: m.f(X), IndexError, "out of range"),
    "check": (
        'void f(torch::Tensor x) { TORCH_CHECK(x.dim() == 1, "want 1 dim, not ", x.dim()); }',
        lambda m: m.f(X),
        RuntimeError,
        "want 1 dim, not 2",
    ),
    "float for int": ("int64_t f(int x) { return x; }", lambda m: m.f(1.5), TypeError, "expected int, not float"),
    "overflow": ("int64_t f(int x) { return x; }", lambda m: m.f(2**40), TypeError, "does not fit"),
    "cpp exception": (
        'void f() { throw std::invalid_argument("no"); }',
        lambda m: m.f(),
        ValueError,
        "no",
    ),
    "torch refuses": (
        "torch::Tensor f(torch::Tensor x) { return x.view({7}); }",
        lambda m: m.f(X),
        RuntimeError,
        "shape",
    ),
}
