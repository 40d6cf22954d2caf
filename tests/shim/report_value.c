/* Prints one value of a JSON file. usage: report_value FILE STEP...; a STEP is a key, an index, # (number of elements, last) or +KEY (sum of
 * that key over an array's elements, last). */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *root = argc > 1 ? json_load_file(argv[1], 0, &error) : NULL, *at = root;
    if (root == NULL) {
        fprintf(stderr, "no JSON in %s\n", argc > 1 ? argv[1] : "nothing");
        return 2;
    }
    for (int i = 2; i < argc && at != NULL; i++) {
        const char *step = argv[i];
        if (step[0] == '#') {
            printf("%zu\n", json_array_size(at));
            at = NULL;
        } else if (step[0] == '+') {
            long long sum = 0;
            for (size_t k = 0; k < json_array_size(at); k++)
                sum += json_integer_value(json_object_get(json_array_get(at, k), step + 1));
            printf("%lld\n", sum);
            at = NULL;
        } else {
            at = json_is_array(at) ? json_array_get(at, (size_t)atoi(step)) : json_object_get(at, step);
        }
    }
    if (at != NULL) {
        char *text = json_dumps(at, JSON_ENCODE_ANY);
        puts(text != NULL ? text : "?");
        free(text);
    }
    json_decref(root);
    return 0;
}
