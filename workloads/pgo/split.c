/* A program whose branches go each way in a known share: of 16 turns of its loop, 15 take one way and
 * one the other, which takes several times as long, so that time alone says something else. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile uint64_t divisor = 7;

__attribute__((noinline)) static uint64_t work(uint64_t n) {
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (i % 16 != 5)
			sum += i ^ sum >> 3;
		else
			sum = sum / divisor % 1000003 / (divisor + 1) % 999 / (divisor + 2);
	}
	return sum;
}

int main(int argc, char **argv) {
	uint64_t sum = 0;
	for (int i = argc > 1 ? atoi(argv[1]) : 100; i > 0; i--)
		sum += work(1000000);
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
