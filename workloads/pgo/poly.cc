// The program of the profiles for compilers: calls through tables of methods and through pointers to
// functions, each with one target that is called most of the time.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <memory>

struct Op {
  virtual uint64_t apply(uint64_t x) const = 0;
  virtual ~Op() {}
};
struct Add : Op { uint64_t n; Add(uint64_t n) : n(n) {} uint64_t apply(uint64_t x) const override; };
struct Mul : Op { uint64_t n; Mul(uint64_t n) : n(n) {} uint64_t apply(uint64_t x) const override; };
struct Xor : Op { uint64_t n; Xor(uint64_t n) : n(n) {} uint64_t apply(uint64_t x) const override; };
uint64_t Add::apply(uint64_t x) const { return x + n; }
uint64_t Mul::apply(uint64_t x) const { return x * n; }
uint64_t Xor::apply(uint64_t x) const { return x ^ n; }

static uint64_t half(uint64_t x) { return x / 2 + 1; }
static uint64_t square(uint64_t x) { return x * x; }

__attribute__((noinline)) uint64_t run(const std::vector<std::unique_ptr<Op>> &ops, uint64_t x) {
  for (const auto &o : ops)
    x = o->apply(x);
  return x;
}

__attribute__((noinline)) uint64_t map(const std::vector<uint64_t> &list, uint64_t (*f)(uint64_t)) {
  uint64_t s = 0;
  for (uint64_t x : list)
    s += f(x);
  return s;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2000;
  std::vector<std::unique_ptr<Op>> ops;
  for (int i = 0; i < 1000; i++) {
    if (i % 50 == 0) ops.emplace_back(new Mul(3));
    else if (i % 50 == 1) ops.emplace_back(new Xor(5));
    else ops.emplace_back(new Add(i));
  }
  std::vector<uint64_t> list;
  for (int i = 0; i < 1000; i++) list.push_back(i);
  uint64_t x = 1;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 100; j++) {
      x = run(ops, x);
      x += map(list, j % 20 == 0 ? square : half);
    }
  printf("%llu\n", (unsigned long long)x);
}
