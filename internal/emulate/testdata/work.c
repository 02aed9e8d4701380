// A program that branches on registers, on its stack and on the heap: an interpreter, a sort through
// a comparison function, a hash table and strings. It runs until it is ended.
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

int main(void) {
	static const int code[] = { PUSH, 1, PUSH, 3, MUL, PUSH, 7, ADD, MOD, DEC, JNZ, 2, END };
	uint32_t numbers[512], seed = 1;
	uint64_t sum = 0;
	for (;;) {
		sum += interpret(code, 300 + seed % 7);
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
