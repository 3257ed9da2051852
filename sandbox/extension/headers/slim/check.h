// Checks that throw, with a message made of any printable parts.
#ifndef QUARRY_SLIM_SLIM_CHECK_H
#define QUARRY_SLIM_SLIM_CHECK_H
#include <exception>
#include <sstream>
#include <string>

namespace slim {

class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

struct IndexError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};

// Printing is out of line for what messages are made of, so that a check costs the compiler little.
void append(std::string& text, const char* part);
void append(std::string& text, const std::string& part);
void append(std::string& text, char part);
void append(std::string& text, bool part);
void append(std::string& text, int part);
void append(std::string& text, unsigned part);
void append(std::string& text, long part);
void append(std::string& text, unsigned long part);
void append(std::string& text, long long part);
void append(std::string& text, double part);
template <typename T>
void append(std::string& text, const T& part) {
  std::ostringstream stream;
  stream << part;
  append(text, stream.str());
}

template <typename... Parts>
std::string str(const Parts&... parts) {
  std::string text;
  (append(text, parts), ...);
  return text;
}

template <typename Failure, typename... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(Parts) == 0)
    throw Failure(str("Expected ", condition, " to be true, but got false."));
  else
    throw Failure(str(parts...));
}

}  // namespace slim

#define SLIM_CHECK(failure, condition, ...)                                                    \
  do {                                                                                         \
    if (__builtin_expect(!(condition), 0)) ::slim::fail<failure>(#condition, ##__VA_ARGS__);    \
  } while (false)
#define TORCH_CHECK(condition, ...) SLIM_CHECK(::slim::Error, condition, ##__VA_ARGS__)
#define TORCH_CHECK_WITH(error, condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b))
#define TORCH_CHECK_VALUE(condition, ...) SLIM_CHECK(::slim::ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) SLIM_CHECK(::slim::IndexError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) static_cast<void>(0)
#define AT_ASSERT(condition) TORCH_CHECK(condition)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_CHECK(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ERROR(...) ::slim::fail<::slim::Error>("", __VA_ARGS__)
#define TORCH_WARN(...) static_cast<void>(0)
#define C10_UNUSED [[maybe_unused]]
#define C10_RESTRICT __restrict__
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
