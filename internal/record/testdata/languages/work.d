// Trees, a sort by a comparison, strings, a map and exceptions, for three seconds or so.
import core.time : MonoTime, seconds;
import std.algorithm : sort;
import std.conv : to;
import std.stdio : writeln;

class Node { Node left, right; }

Node grow(int depth) {
	auto n = new Node;
	if (depth > 0) { n.left = grow(depth - 1); n.right = grow(depth - 1); }
	return n;
}

int count(Node n) { return n is null ? 0 : 1 + count(n.left) + count(n.right); }

int deep(int n) {
	if (n == 0) throw new Exception("deep");
	return deep(n - 1) + 1;
}

void main() {
	auto end = MonoTime.currTime + 3.seconds;
	long sum;
	while (MonoTime.currTime < end) {
		sum += count(grow(12));
		string[] names;
		foreach (i; 0 .. 2000) names ~= "name" ~ to!string(i * 7919 % 2000);
		sort!((a, b) => a > b)(names);
		int[string] index;
		foreach (s; names) index[s] = cast(int) s.length;
		try sum += deep(30); catch (Exception) sum += index.length;
	}
	writeln(sum);
}
