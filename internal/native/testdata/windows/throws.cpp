// C++ that throws, calls through tables, and uses the library. It waits for a line, and works between
// two breakpoints.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))
volatile long sink;

struct Shape {
	virtual ~Shape() {}
	virtual long area(long n) const = 0;
};
struct Square : Shape {
	NOINLINE long area(long n) const override { return n * n; }
};
struct Double : Shape {
	const Shape &of;
	Double(const Shape &s) : of(s) {}
	NOINLINE long area(long n) const override { return 2 * of.area(n); }
};
struct Cleanup {
	long n;
	NOINLINE ~Cleanup() { sink += n; }
};
NOINLINE void thrower(long n) {
	Cleanup c{n};
	if (n == 0) throw std::runtime_error("bottom");
	thrower(n - 1);
}
NOINLINE long catcher(long n) {
	try {
		thrower(n);
	} catch (const std::exception &e) {
		return n + e.what()[0];
	}
	return 0;
}
NOINLINE void work() {
	Square s;
	Double d(s), dd(d);
	sink += dd.area(3);
	std::vector<std::string> v;
	std::map<std::string, long> m;
	for (int i = 0; i < 12; i++) {
		v.push_back("number " + std::to_string((i * 7) % 12));
		m[v.back()] = i;
	}
	std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) { return b < a; });
	sink += m[v[3]];
#ifdef THROWS
	sink += catcher(3);
#endif
}
int main() {
	puts("ready");
	fflush(stdout);
	getchar();
	__asm__ volatile("int3");
	work();
	__asm__ volatile("int3");
	return 0;
}
