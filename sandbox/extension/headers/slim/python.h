// Python's stable ABI, and an owner of its references. Every function here needs the GIL, which a bound
// function holds for the whole call, as with pybind11; only the last owner of a tensor may come without it.
#ifndef QUARRY_SLIM_SLIM_PYTHON_H
#define QUARRY_SLIM_SLIM_PYTHON_H
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace slim {

// A Python exception that is already set and only has to travel up to the binding.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "a Python exception is set"; }
};

// An owned reference.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned);  // throws where `owned` is null: an exception is set then
  Object(const Object& other);
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object other) noexcept;
  ~Object() {
    if (object_ != nullptr) drop();
  }
  static Object borrowed(PyObject* object);
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  Object attribute(const char* name) const;

 private:
  void drop();
  PyObject* object_ = nullptr;
};

int64_t as_int(PyObject* object);
double as_double(PyObject* object);

// A name of torch's Python module.
Object torch_attribute(const char* name);

// The stream that torch uses on a CUDA device now, as a number.
uintptr_t current_stream(int device);

}  // namespace slim
#endif
