// A program that branches on registers, on its stack and on the heap: an interpreter, a sort through
// a comparison function, a hash table, strings, and numbers with fractions. It runs until it is ended.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH, ADD, MUL, JNZ, DEC, MOD, END };

static uint64_t interpret(const int *code, uint64_t n) {
	uint64_t stack[64], *sp = stack;
	*sp = n;
	for (const int *pc = code;;) {
		switch (*pc++) {
		case PUSH: *++sp = *pc++; break;
		case ADD: sp[-1] += *sp; sp--; break;
		case MUL: sp[-1] *= *sp; sp--; break;
		case DEC: stack[0]--; break;
		case MOD: *sp %= 1000003; break;
		case JNZ: if (stack[0]) { pc = code + *pc; } else { pc++; } break;
		default: return *sp;
		}
	}
}

static int compare(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

struct node { struct node *next; char name[24]; int n; };
static struct node *table[256];

static unsigned hash(const char *s) {
	unsigned h = 5381;
	while (*s) h = h * 33 ^ (unsigned char)*s++;
	return h;
}

static struct node *find(const char *name) {
	for (struct node *p = table[hash(name) % 256]; p; p = p->next) {
		const char *a = p->name, *b = name;
		while (*a && *a == *b) a++, b++;
		if (*a == *b) return p;
	}
	return NULL;
}

struct body { double x, y, vx, vy; float mass; };

// move makes bodies attract each other, and counts those that are far away.
static int move(struct body *b, int n) {
	int far = 0;
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++) {
			double dx = b[j].x - b[i].x, dy = b[j].y - b[i].y, d = dx * dx + dy * dy + 0.01;
			if (d > 30) { far++; continue; }
			double f = b[j].mass / (d * sqrt(d)) * 1e-3;
			b[i].vx += dx * f;
			b[i].vy += dy * f;
		}
		b[i].x = fmin(fmax(b[i].x + b[i].vx * 0.01, -9), 9);
		b[i].y += b[i].vy * 0.01;
		if ((int)b[i].y % 3 == 1) far += (int)(b[i].x * 10) & 1;
		if (fabs(b[i].y) > 9) b[i].vy = -b[i].vy;
	}
	return far;
}

// text puts words together and takes them apart by the C library.
static unsigned text(char *buf, unsigned seed) {
	static const char *words[] = { "alpha", "be", "a rather long word, longer than a register", "delta", "x" };
	char *p = buf;
	unsigned n = 0;
	for (int i = 0; i < 40; i++) {
		const char *w = words[(seed = seed * 1664525 + 1013904223) >> 28 & 3];
		size_t k = strlen(w);
		memcpy(p, w, k);
		p += k, *p++ = ' ';
	}
	*p = 0;
	for (p = buf; (p = strchr(p, ' ')); p++) n += memcmp(p, " alpha", 6) == 0;
	return n + (unsigned)(strcmp(buf, words[2]) > 0) + (strstr(buf, "alpha") != NULL);
}

int main(void) {
	static struct body bodies[24];
	static char buf[4096];
	for (int i = 0; i < 24; i++) bodies[i] = (struct body){ i % 5 - 2, i % 7 - 3, 0, 0, 1 + i % 3 };
	static const int code[] = { PUSH, 1, PUSH, 3, MUL, PUSH, 7, ADD, MOD, DEC, JNZ, 2, END };
	uint32_t numbers[512], seed = 1;
	uint64_t sum = 0;
	for (;;) {
		sum += interpret(code, 300 + seed % 7);
		for (int i = 0; i < 4; i++) sum += move(bodies, 24) + text(buf, seed + i);
		for (int i = 0; i < 512; i++) numbers[i] = seed = seed * 1664525 + 1013904223;
		qsort(numbers, 512, sizeof *numbers, compare);
		for (int i = 0; i < 512; i++) {
			char name[24] = "key";
			uint32_t v = numbers[i] % 999;
			int k = 3;
			do name[k++] = '0' + v % 10; while (v /= 10);
			struct node *p = find(name);
			if (!p) {
				p = calloc(1, sizeof *p);
				memcpy(p->name, name, sizeof name);
				p->next = table[hash(name) % 256];
				table[hash(name) % 256] = p;
			}
			p->n++, sum += p->n;
		}
		if (sum == 42) return 1;
	}
}
