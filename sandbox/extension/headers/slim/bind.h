// Python bindings without pybind11: the part of its vocabulary that kernels use, at a fraction of its compile time.
#ifndef QUARRY_SLIM_SLIM_BIND_H
#define QUARRY_SLIM_SLIM_BIND_H
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tensor.h"

namespace slim {

[[noreturn]] void type_error(const std::string& message);
[[noreturn]] void unlike(PyObject* object, const char* wanted);

// How a C++ type looks to Python: its name in messages, and the ways in and out.
template <typename T, typename = void>
struct Cast;

#define SLIM_CAST(type)                     \
  template <>                               \
  struct Cast<type> {                       \
    static std::string name();              \
    static type in(PyObject* object);       \
    static Object out(const type& value);   \
  };
SLIM_CAST(Tensor)
SLIM_CAST(bool)
SLIM_CAST(int64_t)
SLIM_CAST(double)
SLIM_CAST(Scalar)
SLIM_CAST(std::string)
SLIM_CAST(ScalarType)
#undef SLIM_CAST

template <typename T>
struct Cast<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, int64_t>>> {
  static std::string name() { return "int"; }
  static T in(PyObject* object) {
    const int64_t value = Cast<int64_t>::in(object);
    if (static_cast<int64_t>(static_cast<T>(value)) != value) type_error(str(value, " does not fit the C++ type"));
    return static_cast<T>(value);
  }
  static Object out(T value) { return to_python(static_cast<int64_t>(value)); }
};
template <>
struct Cast<float> {
  static std::string name() { return "float"; }
  static float in(PyObject* object) { return static_cast<float>(Cast<double>::in(object)); }
  static Object out(float value) { return to_python(static_cast<double>(value)); }
};

// Sequences, whatever their elements.
Object sequence_item(PyObject* sequence, size_t index);
size_t sequence_size(PyObject* object);
Object list_of(std::vector<Object> items);
Object tuple_of(std::vector<Object> items);

template <typename T>
struct Cast<std::optional<T>> {
  static std::string name() { return Cast<T>::name() + " | None"; }
  static std::optional<T> in(PyObject* object) {
    if (object == Py_None) return std::nullopt;
    return Cast<T>::in(object);
  }
  static Object out(const std::optional<T>& value) { return value ? Cast<T>::out(*value) : to_python(Py_None); }
};
template <typename T>
struct Cast<std::vector<T>> {
  static std::string name() { return "list[" + Cast<T>::name() + "]"; }
  static std::vector<T> in(PyObject* object) {
    std::vector<T> values;
    for (size_t i = 0, size = sequence_size(object); i < size; ++i)
      values.push_back(Cast<T>::in(sequence_item(object, i).get()));
    return values;
  }
  static Object out(const std::vector<T>& values) {
    std::vector<Object> items;
    for (const T& value : values) items.push_back(Cast<T>::out(value));
    return list_of(std::move(items));
  }
};
template <typename... T>
struct Cast<std::tuple<T...>> {
  static std::string name() { return "tuple"; }
  static std::tuple<T...> in(PyObject* object) {
    if (sequence_size(object) != sizeof...(T)) unlike(object, "a tuple of the right length");
    return in(object, std::index_sequence_for<T...>());
  }
  static Object out(const std::tuple<T...>& values) {
    return std::apply([](const T&... value) { return tuple_of({Cast<T>::out(value)...}); }, values);
  }

 private:
  template <size_t... I>
  static std::tuple<T...> in(PyObject* object, std::index_sequence<I...>) {
    return std::tuple<T...>{Cast<T>::in(sequence_item(object, I).get())...};
  }
};
template <typename A, typename B>
struct Cast<std::pair<A, B>> {
  static std::string name() { return "tuple"; }
  static std::pair<A, B> in(PyObject* object) {
    auto [a, b] = Cast<std::tuple<A, B>>::in(object);
    return {a, b};
  }
  static Object out(const std::pair<A, B>& value) { return tuple_of({Cast<A>::out(value.first), Cast<B>::out(value.second)}); }
};

// What holds an argument while the call lasts: itself, or the vector behind a view of one.
template <typename T>
struct Held {
  using type = T;
};
template <typename T>
struct Held<ArrayRef<T>> {
  using type = std::vector<T>;
};
template <typename T>
using Hold = typename Held<std::remove_cv_t<std::remove_reference_t<T>>>::type;

// A named argument, perhaps with a default.
struct Arg {
  explicit Arg(const char* name) : name(name) {}
  template <typename T>
  Arg operator=(const T& value) const {
    Arg copy = *this;
    if constexpr (std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, Object>)
      copy.standard = to_python(Py_None);
    else
      copy.standard = Cast<std::conditional_t<std::is_convertible_v<T, std::string>, std::string, T>>::out(value);
    return copy;
  }
  Arg& noconvert() { return *this; }
  Arg& none() { return *this; }
  std::string name;
  std::optional<Object> standard;
};

// A bound function, whatever its type.
class Bound {
 public:
  explicit Bound(size_t count) : count_(count) {}
  virtual ~Bound() = default;
  Object call(PyObject* arguments, PyObject* keywords) const;
  void describe(const char* name);
  void add(const Arg& argument) { named_.push_back(argument); }
  void add(const char* text) { documentation_ = text; }
  template <typename T>
  void add(const T&) {}  // call guards and policies change nothing here
  Object function();     // the Python object; `this` has to live on

 protected:
  virtual Object invoke(PyObject* const* values) const = 0;
  virtual std::vector<std::string> types() const = 0;
  std::string signature() const;
  [[noreturn]] void rethrow(size_t index) const;  // a TypeError that is set, with the place where it arose

 private:
  void gather(PyObject* arguments, PyObject* keywords, PyObject** values) const;
  [[noreturn]] void wrong_count(size_t given) const;
  size_t count_;
  std::vector<Arg> named_;
  std::string name_, documentation_;
  PyMethodDef method_{};
};

template <typename F, typename R, typename... A>
class BoundFunction final : public Bound {
 public:
  explicit BoundFunction(F function) : Bound(sizeof...(A)), function_(std::move(function)) {}

 protected:
  Object invoke(PyObject* const* values) const override { return invoke(values, std::index_sequence_for<A...>()); }
  std::vector<std::string> types() const override { return {Cast<Hold<A>>::name()...}; }

 private:
  template <size_t... I>
  Object invoke([[maybe_unused]] PyObject* const* values, std::index_sequence<I...>) const {
    std::tuple<Hold<A>...> held{convert<Hold<A>>(values[I], I)...};
    if constexpr (std::is_void_v<R>) {
      function_(std::get<I>(held)...);
      return to_python(Py_None);
    } else {
      return Cast<Hold<R>>::out(function_(std::get<I>(held)...));
    }
  }
  template <typename T>
  T convert(PyObject* value, size_t index) const {
    try {
      return Cast<T>::in(value);
    } catch (const PythonError&) {
      rethrow(index);
    }
  }
  mutable F function_;
};

template <typename R, typename... A>
Bound* make_bound(R (*function)(A...)) {
  return new BoundFunction<R (*)(A...), R, A...>(function);
}
template <typename F, typename R, typename... A>
Bound* make_bound_as(F function, R (F::*)(A...) const) {
  return new BoundFunction<F, R, A...>(std::move(function));
}
template <typename F>
auto make_bound(F function) -> decltype(make_bound_as(std::move(function), &F::operator())) {
  return make_bound_as(std::move(function), &F::operator());
}

// The module under construction, as PYBIND11_MODULE hands it to its body.
class Module {
 public:
  explicit Module(PyObject* module) : module_(module) {}
  std::string& doc() { return doc_; }

  template <typename F, typename... Extra>
  Module& def(const char* name, F&& function, const Extra&... extra) {
    Bound* bound = make_bound(std::forward<F>(function));  // lives as long as the process
    (bound->add(extra), ...);
    bound->describe(name);
    set(name, bound->function());
    return *this;
  }

 private:
  void set(const char* name, Object value);
  PyObject* module_;
  std::string doc_;
};

template <typename F>
F* wrap_pybind_function(F* function) {
  return function;
}

PyObject* make_module(PyModuleDef& definition, void (*fill)(Module&));

}  // namespace slim

namespace pybind11 {
using arg = ::slim::Arg;
using module_ = ::slim::Module;
inline ::slim::Object none() { return ::slim::to_python(Py_None); }
struct gil_scoped_release {
  gil_scoped_release() {}  // a timed call has no other thread to let in
};
template <typename T = void>
struct call_guard {};
namespace literals {
inline ::slim::Arg operator""_a(const char* name, size_t) { return ::slim::Arg(name); }
}  // namespace literals
}  // namespace pybind11
namespace py = pybind11;

#define SLIM_TEXT_(x) #x
#define SLIM_TEXT(x) SLIM_TEXT_(x)
#define SLIM_JOIN_(a, b) a##b
#define SLIM_JOIN(a, b) SLIM_JOIN_(a, b)
#define PYBIND11_MODULE(name, variable, ...)                                                         \
  static void slim_fill(::slim::Module&);                                                            \
  extern "C" __attribute__((visibility("default"))) PyObject* SLIM_JOIN(PyInit_, name)() {           \
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, SLIM_TEXT(name), nullptr, -1, nullptr,   \
                                     nullptr, nullptr, nullptr, nullptr};                            \
    return ::slim::make_module(definition, slim_fill);                                               \
  }                                                                                                  \
  static void slim_fill([[maybe_unused]] ::slim::Module& variable)
#endif
