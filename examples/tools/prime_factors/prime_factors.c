/* Build it in this folder, before the tool is allowed:
 *
 *     cc -O2 -o prime_factors prime_factors.c
 *
 * The arguments have passed the schema when they come here: {"number": 360}. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char text[256];
    size_t length = fread(text, 1, sizeof text - 1, stdin);
    text[length] = '\0';
    char *at = strstr(text, "\"number\"");
    at = at ? strchr(at, ':') : NULL;
    if (at == NULL) {
        fputs("the number is missing\n", stderr);
        return 2;
    }
    unsigned long long number = strtoull(at + 1, NULL, 10);
    printf("%llu =", number);
    const char *sign = " ";
    for (unsigned long long factor = 2; factor * factor <= number; factor++) {
        while (number % factor == 0) {
            printf("%s%llu", sign, factor);
            sign = " * ";
            number /= factor;
        }
    }
    if (number > 1) {
        printf("%s%llu", sign, number);
    }
    putchar('\n');
    return 0;
}
