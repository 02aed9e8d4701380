// Trees, a sort by a comparison, strings and exceptions, for three seconds or so.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Node { std::unique_ptr<Node> left, right; };

__attribute__((noinline)) std::unique_ptr<Node> grow(int depth) {
	auto n = std::make_unique<Node>();
	if (depth > 0) n->left = grow(depth - 1), n->right = grow(depth - 1);
	return n;
}

__attribute__((noinline)) int count(const Node *n) { return n ? 1 + count(n->left.get()) + count(n->right.get()) : 0; }

__attribute__((noinline)) int deep(int n) {
	if (n == 0) throw std::runtime_error("deep");
	return deep(n - 1) + 1;
}

int main() {
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
	long sum = 0;
	while (std::chrono::steady_clock::now() < end) {
		sum += count(grow(12).get());
		std::vector<std::string> names;
		for (int i = 0; i < 2000; i++) names.push_back("name" + std::to_string(i * 7919 % 2000));
		std::sort(names.begin(), names.end(), [](const std::string &a, const std::string &b) { return a > b; });
		std::map<std::string, int> index;
		for (auto &s : names) index[s] = int(s.size());
		try { deep(30); } catch (const std::runtime_error &) { sum += long(index.size()); }
	}
	return sum == 42;
}
