// The slim headers' own code, compiled once and linked to every candidate.
#include "slim.h"

namespace slim {

// --- python.h ---

Object::Object(PyObject* owned) : object_(owned) {
  if (owned == nullptr) throw PythonError();
}
Object::Object(const Object& other) : object_(other.object_) { Py_XINCREF(object_); }
Object& Object::operator=(Object other) noexcept {
  std::swap(object_, other.object_);
  return *this;
}
void Object::drop() {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(object_);
  PyGILState_Release(state);
}
Object Object::borrowed(PyObject* object) {
  Py_XINCREF(object);
  return Object(object);
}
Object Object::attribute(const char* name) const { return Object(PyObject_GetAttrString(object_, name)); }

int64_t as_int(PyObject* object) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}
double as_double(PyObject* object) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return value;
}

namespace {

// Python objects that are looked up once and never let go: they may outlive the interpreter.
PyObject* torch_module() {
  static PyObject* module = Object(PyImport_ImportModule("torch")).release();
  return module;
}
PyObject* tensor_type() {
  static PyObject* type = torch_attribute("Tensor").release();
  return type;
}
PyObject* text(const char* characters) {
  return Object(PyUnicode_InternFromString(characters)).release();
}

bool truth(const Object& value) { return PyObject_IsTrue(value.get()) == 1; }

template <typename... Arguments>
Object call(const Object& callable, PyObject* keywords, const Arguments&... arguments) {
  return Object(PyObject_Call(callable.get(), tuple_of({to_python(arguments)...}).get(), keywords));
}
template <typename... Arguments>
Object method(const Tensor& tensor, const char* name, const Arguments&... arguments) {
  return call(Object(PyObject_GetAttrString(tensor.python(), name)), nullptr, arguments...);
}
template <typename... Arguments>
Tensor create(const char* function, const TensorOptions& options, const Arguments&... arguments) {
  return Tensor(call(torch_attribute(function), options.keywords().get(), arguments...));
}
void set(const Object& dictionary, const char* key, const Object& value) {
  if (PyDict_SetItemString(dictionary.get(), key, value.get()) < 0) throw PythonError();
}

}  // namespace

Object torch_attribute(const char* name) { return Object(PyObject_GetAttrString(torch_module(), name)); }
uintptr_t current_stream(int device) {
  static const Object* ask = new Object(torch_attribute("_C").attribute("_cuda_getCurrentRawStream"));
  return static_cast<uintptr_t>(as_int(call(*ask, nullptr, device).get()));
}

// --- check.h, dtype.h, array_ref.h ---

void append(std::string& text, const char* part) { text += part; }
void append(std::string& text, const std::string& part) { text += part; }
void append(std::string& text, char part) { text += part; }
void append(std::string& text, bool part) { text += part ? "true" : "false"; }
void append(std::string& text, int part) { text += std::to_string(part); }
void append(std::string& text, unsigned part) { text += std::to_string(part); }
void append(std::string& text, long part) { text += std::to_string(part); }
void append(std::string& text, unsigned long part) { text += std::to_string(part); }
void append(std::string& text, long long part) { text += std::to_string(part); }
void append(std::string& text, double part) {
  std::ostringstream stream;
  stream << part;
  text += stream.str();
}
void append(std::string& text, ScalarType type) { text += toString(type); }
void append(std::string& text, IntArrayRef values) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  text += ']';
}

const char* toString(ScalarType type) {
  switch (type) {
#define SLIM_NAME(ctype, name, text) \
  case ScalarType::name:             \
    return #name;
    SLIM_FORALL_TYPES(SLIM_NAME)
#undef SLIM_NAME
    default:
      return "Undefined";
  }
}
size_t elementSize(ScalarType type) {
  switch (type) {
#define SLIM_SIZE(ctype, name, text) \
  case ScalarType::name:             \
    return sizeof(ctype);
    SLIM_FORALL_TYPES(SLIM_SIZE)
#undef SLIM_SIZE
    default:
      throw Error("this scalar type has no size");
  }
}

namespace {

struct KnownType {
  ScalarType type;
  PyObject* object;
};
const std::vector<KnownType>& known_types() {
  static const auto* types = new std::vector<KnownType>{
#define SLIM_LOOK_UP(ctype, name, text) {ScalarType::name, torch_attribute(text).release()},
      SLIM_FORALL_TYPES(SLIM_LOOK_UP)
#undef SLIM_LOOK_UP
  };
  return *types;
}

}  // namespace

Object dtype_object(ScalarType type) {
  for (const KnownType& known : known_types())
    if (known.type == type) return Object::borrowed(known.object);
  throw Error("this scalar type has no torch.dtype");
}
ScalarType dtype_of(PyObject* object) {
  for (const KnownType& known : known_types())
    if (known.object == object) return known.type;
  throw Error("tensors of this dtype are not known to the slim headers");
}

// --- options.h ---

Device::Device(const std::string& text) : kind(text.rfind("cuda", 0) == 0 ? kCUDA : kCPU) {
  const auto colon = text.find(':');
  if (colon != std::string::npos) place = static_cast<DeviceIndex>(std::stoi(text.substr(colon + 1)));
}
std::string Device::str() const {
  return std::string(is_cuda() ? "cuda" : "cpu") + (has_index() ? ":" + std::to_string(place) : "");
}

Object TensorOptions::keywords() const {
  Object result(PyDict_New());
  if (dtype_) set(result, "dtype", dtype_object(*dtype_));
  if (device_) set(result, "device", Object(PyUnicode_FromString(device_->str().c_str())));
  if (requires_grad_) set(result, "requires_grad", to_python(true));
  if (format_ && *format_ != MemoryFormat::Contiguous && *format_ != MemoryFormat::Preserve)
    set(result, "memory_format", format_object(*format_));
  return result;
}
Object TensorOptions::format_object(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::ChannelsLast:
      return torch_attribute("channels_last");
    case MemoryFormat::ChannelsLast3d:
      return torch_attribute("channels_last_3d");
    case MemoryFormat::Preserve:
      return torch_attribute("preserve_format");
    default:
      return torch_attribute("contiguous_format");
  }
}

// --- tensor.h ---

Object Scalar::object() const { return floating_ ? to_python(real_) : to_python(integer_); }

Object to_python(PyObject* value) { return Object::borrowed(value); }
Object to_python(const Object& value) { return value; }
Object to_python(int64_t value) { return Object(PyLong_FromLongLong(value)); }
Object to_python(int value) { return Object(PyLong_FromLong(value)); }
Object to_python(bool value) { return Object(PyBool_FromLong(value)); }
Object to_python(double value) { return Object(PyFloat_FromDouble(value)); }
Object to_python(const Scalar& value) { return value.object(); }
Object to_python(ScalarType value) { return dtype_object(value); }
Object to_python(IntArrayRef values) {
  std::vector<Object> items;
  for (int64_t value : values) items.push_back(to_python(value));
  return tuple_of(std::move(items));
}
Object to_python(const Tensor& value) { return Object::borrowed(value.defined() ? value.python() : Py_None); }

Tensor::Impl::Impl(Object tensor) : object(std::move(tensor)) {
  static PyObject *const data_ptr = text("data_ptr"), *const shape = text("shape"), *const stride = text("stride"),
                          *const dtype = text("dtype"), *const is_cuda = text("is_cuda");
  const auto get = [this](PyObject* name) { return Object(PyObject_GetAttr(object.get(), name)); };
  const auto ask = [&](PyObject* name) { return Object(PyObject_CallNoArgs(get(name).get())); };
  const auto read = [](const Object& tuple, std::vector<int64_t>& into) {
    const Py_ssize_t rank = PyTuple_Size(tuple.get());
    if (rank < 0) throw PythonError();
    into.resize(static_cast<size_t>(rank));
    for (Py_ssize_t i = 0; i < rank; ++i) into[static_cast<size_t>(i)] = as_int(PyTuple_GetItem(tuple.get(), i));
  };
  data = reinterpret_cast<void*>(as_int(ask(data_ptr).get()));
  read(get(shape), sizes);
  read(ask(stride), strides);
  type = dtype_of(get(dtype).get());
  if (truth(get(is_cuda)))
    device = Device(kCUDA, static_cast<DeviceIndex>(as_int(call(object.attribute("get_device"), nullptr).get())));
  for (size_t i = sizes.size(); i-- > 0;) {
    contiguous = contiguous && (sizes[i] == 1 || strides[i] == numel);
    numel *= sizes[i];
  }
  contiguous = contiguous || numel == 0;
}
Tensor::Tensor(Object object) : impl_(std::make_shared<Impl>(std::move(object))) {}
PyObject* Tensor::python() const { return get().object.get(); }
bool Tensor::requires_grad() const { return truth(get().object.attribute("requires_grad")); }
bool Tensor::is_contiguous_as(MemoryFormat format) const {
  Object keywords(PyDict_New());
  set(keywords, "memory_format", TensorOptions::format_object(format));
  return truth(call(get().object.attribute("is_contiguous"), keywords.get()));
}
void Tensor::undefined() { throw Error("expected a tensor but got an undefined one"); }
size_t Tensor::wrap(int64_t index) const {
  const int64_t rank = dim();
  TORCH_CHECK_INDEX(index >= -rank && index < rank, "Dimension out of range (expected to be in range of [", -rank,
                    ", ", rank - 1, "], but got ", index, ")");
  return static_cast<size_t>(index < 0 ? index + rank : index);
}
void Tensor::check_rank(size_t rank) const {
  TORCH_CHECK(static_cast<size_t>(dim()) == rank, "TensorAccessor expected ", rank, " dims but tensor has ", dim());
}
Scalar Tensor::item() const { return Cast<Scalar>::in(method(*this, "item").get()); }

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous && is_contiguous()) return *this;
  Object keywords(PyDict_New());
  set(keywords, "memory_format", TensorOptions::format_object(format));
  return Tensor(call(get().object.attribute("contiguous"), keywords.get()));
}
Tensor Tensor::clone() const { return Tensor(method(*this, "clone")); }
Tensor Tensor::detach() const { return Tensor(method(*this, "detach")); }
Tensor Tensor::data() const { return detach(); }
const Tensor& Tensor::copy_(const Tensor& source, bool) const {
  method(*this, "copy_", source);
  return *this;
}
const Tensor& Tensor::fill_(const Scalar& value) const {
  method(*this, "fill_", value);
  return *this;
}
const Tensor& Tensor::zero_() const {
  method(*this, "zero_");
  return *this;
}
Tensor Tensor::view(IntArrayRef sizes) const { return Tensor(method(*this, "view", sizes)); }
Tensor Tensor::view_as(const Tensor& other) const { return view(other.sizes()); }
Tensor Tensor::reshape(IntArrayRef sizes) const { return Tensor(method(*this, "reshape", sizes)); }
Tensor Tensor::reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
Tensor Tensor::expand(IntArrayRef sizes) const { return Tensor(method(*this, "expand", sizes)); }
Tensor Tensor::expand_as(const Tensor& other) const { return expand(other.sizes()); }
Tensor Tensor::permute(IntArrayRef dims) const { return Tensor(method(*this, "permute", dims)); }
Tensor Tensor::transpose(int64_t a, int64_t b) const { return Tensor(method(*this, "transpose", a, b)); }
Tensor Tensor::t() const { return Tensor(method(*this, "t")); }
Tensor Tensor::squeeze() const { return Tensor(method(*this, "squeeze")); }
Tensor Tensor::squeeze(int64_t dim) const { return Tensor(method(*this, "squeeze", dim)); }
Tensor Tensor::unsqueeze(int64_t dim) const { return Tensor(method(*this, "unsqueeze", dim)); }
Tensor Tensor::flatten(int64_t start, int64_t end) const { return Tensor(method(*this, "flatten", start, end)); }
Tensor Tensor::select(int64_t dim, int64_t index) const { return Tensor(method(*this, "select", dim, index)); }
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return Tensor(method(*this, "narrow", dim, start, length));
}
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) const {
  const auto bound = [](std::optional<int64_t> value) { return value ? to_python(*value) : to_python(Py_None); };
  std::vector<Object> key(wrap(dim), Object(PySlice_New(Py_None, Py_None, Py_None)));
  key.push_back(Object(PySlice_New(bound(start).get(), bound(end).get(), to_python(step).get())));
  return Tensor(Object(PyObject_GetItem(python(), tuple_of(std::move(key)).get())));
}

// --- creation.h ---

Tensor empty(IntArrayRef sizes, const TensorOptions& options) { return create("empty", options, sizes); }
Tensor zeros(IntArrayRef sizes, const TensorOptions& options) { return create("zeros", options, sizes); }
Tensor ones(IntArrayRef sizes, const TensorOptions& options) { return create("ones", options, sizes); }
Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options) {
  return create("full", options, sizes, value);
}
Tensor empty_like(const Tensor& like, const TensorOptions& options) { return create("empty_like", options, like); }
Tensor zeros_like(const Tensor& like, const TensorOptions& options) { return create("zeros_like", options, like); }
Tensor ones_like(const Tensor& like, const TensorOptions& options) { return create("ones_like", options, like); }
Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options) {
  return create("full_like", options, like, value);
}
Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return create("empty_strided", options, sizes, strides);
}
Tensor tensor_of(const std::vector<Scalar>& values, const TensorOptions& options) {
  std::vector<Object> items;
  for (const Scalar& value : values) items.push_back(value.object());
  return create("tensor", options, list_of(std::move(items)));
}
Tensor tensor_of(const Scalar& value, const TensorOptions& options) { return create("tensor", options, value); }

// --- bind.h ---

void type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw PythonError();
}
void unlike(PyObject* object, const char* wanted) {
  Object kind(PyObject_Type(object));
  Object name = kind.attribute("__name__");
  type_error(str("expected ", wanted, ", not ", Cast<std::string>::in(name.get())));
}

std::string Cast<Tensor>::name() { return "torch.Tensor"; }
Tensor Cast<Tensor>::in(PyObject* object) {
  if (object == Py_None) return Tensor();
  if (PyObject_IsInstance(object, tensor_type()) != 1) unlike(object, "torch.Tensor");
  return Tensor(Object::borrowed(object));
}
Object Cast<Tensor>::out(const Tensor& value) { return to_python(value); }

std::string Cast<bool>::name() { return "bool"; }
bool Cast<bool>::in(PyObject* object) {
  if (!PyBool_Check(object)) unlike(object, "bool");
  return object == Py_True;
}
Object Cast<bool>::out(const bool& value) { return to_python(value); }

std::string Cast<int64_t>::name() { return "int"; }
int64_t Cast<int64_t>::in(PyObject* object) {
  if (PyFloat_Check(object)) unlike(object, "int");
  return PyLong_Check(object) ? as_int(object) : as_int(Object(PyNumber_Index(object)).get());
}
Object Cast<int64_t>::out(const int64_t& value) { return to_python(value); }

std::string Cast<double>::name() { return "float"; }
double Cast<double>::in(PyObject* object) { return as_double(object); }
Object Cast<double>::out(const double& value) { return to_python(value); }

std::string Cast<Scalar>::name() { return "number"; }
Scalar Cast<Scalar>::in(PyObject* object) {
  return PyFloat_Check(object) ? Scalar(as_double(object)) : Scalar(as_int(object));
}
Object Cast<Scalar>::out(const Scalar& value) { return value.object(); }

std::string Cast<std::string>::name() { return "str"; }
std::string Cast<std::string>::in(PyObject* object) {
  if (!PyUnicode_Check(object)) unlike(object, "str");
  Object bytes(PyUnicode_AsUTF8String(object));
  return PyBytes_AsString(bytes.get());
}
Object Cast<std::string>::out(const std::string& value) { return Object(PyUnicode_FromString(value.c_str())); }

std::string Cast<ScalarType>::name() { return "torch.dtype"; }
ScalarType Cast<ScalarType>::in(PyObject* object) { return dtype_of(object); }
Object Cast<ScalarType>::out(const ScalarType& value) { return dtype_object(value); }

Object sequence_item(PyObject* sequence, size_t index) {
  return Object(PySequence_GetItem(sequence, static_cast<Py_ssize_t>(index)));
}
size_t sequence_size(PyObject* object) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) unlike(object, "a list or tuple");
  return static_cast<size_t>(PySequence_Size(object));
}
Object list_of(std::vector<Object> items) {
  Object list(PyList_New(0));
  for (const Object& item : items)
    if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
  return list;
}
Object tuple_of(std::vector<Object> items) {
  Object tuple(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    if (PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), items[i].release()) < 0) throw PythonError();
  return tuple;
}

Object Bound::call(PyObject* arguments, PyObject* keywords) const {
  std::vector<PyObject*> values(count_ + 1, nullptr);
  gather(arguments, keywords, values.data());
  return invoke(values.data());
}
void Bound::describe(const char* name) { name_ = name; }
void Bound::gather(PyObject* arguments, PyObject* keywords, PyObject** values) const {
  const size_t given = static_cast<size_t>(PyTuple_Size(arguments));
  if (given > count_) wrong_count(given);
  for (size_t i = 0; i < given; ++i) values[i] = PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(i));
  size_t used = 0;
  for (size_t i = 0; i < named_.size() && i < count_; ++i) {
    PyObject* value = keywords ? PyDict_GetItemString(keywords, named_[i].name.c_str()) : nullptr;
    if (value != nullptr) {
      if (values[i] != nullptr) type_error(str(name_, "(): argument '", named_[i].name, "' given twice"));
      values[i] = value;
      ++used;
    } else if (values[i] == nullptr && named_[i].standard) {
      values[i] = named_[i].standard->get();
    }
  }
  if (keywords && static_cast<size_t>(PyDict_Size(keywords)) != used)
    type_error(signature() + ": unexpected keyword argument");
  for (size_t i = 0; i < count_; ++i)
    if (values[i] == nullptr) wrong_count(given + used);
}
std::string Bound::signature() const {
  std::string text = name_ + "(";
  size_t index = 0;
  for (const std::string& type : types()) text += (index++ ? ", " : "") + type;
  return text + ")";
}
void Bound::wrong_count(size_t given) const {
  type_error(str(signature(), ": takes ", count_, " arguments, ", given, " given"));
}
void Bound::rethrow(size_t index) const {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  Object owned_type(type), owned_error(error), text(PyObject_Str(error));
  Py_XDECREF(trace);
  type_error(str(signature(), ": argument ", index + 1, ": ", Cast<std::string>::in(text.get())));
}

namespace {

// The one C entry behind every bound function; C++ exceptions become Python's here.
PyObject* trampoline(PyObject* capsule, PyObject* arguments, PyObject* keywords) {
  const auto* bound = static_cast<const Bound*>(PyCapsule_GetPointer(capsule, nullptr));
  try {
    return bound->call(arguments, keywords).release();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const IndexError& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "a C++ exception of unknown type");
  }
  return nullptr;
}

}  // namespace

Object Bound::function() {
  method_ = {name_.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(trampoline)),
             METH_VARARGS | METH_KEYWORDS, documentation_.c_str()};
  Object capsule(PyCapsule_New(this, nullptr, nullptr));
  return Object(PyCFunction_NewEx(&method_, capsule.get(), nullptr));
}
void Module::set(const char* name, Object value) {
  if (PyObject_SetAttrString(module_, name, value.get()) < 0) throw PythonError();
}
PyObject* make_module(PyModuleDef& definition, void (*fill)(Module&)) {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  try {
    Module wrapper(module);
    fill(wrapper);
    return module;
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
  }
  Py_DECREF(module);
  return nullptr;
}

}  // namespace slim
