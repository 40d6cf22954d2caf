/* An extension module that allocates through the runtime and writes down, at the same call, which Python frames the interpreter itself shows. Each
 * allocation has a size of its own, by which its line in the file and its event in the journal are found again. Built by the test for each
 * interpreter (3.8 and later). One file a process; calls from threads are serialised by the interpreter's lock, which is held while writing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <frameobject.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
#if PY_VERSION_HEX < 0x030d0000
int _Py_IsFinalizing(void);
#define IS_FINALIZING _Py_IsFinalizing
#else
#define IS_FINALIZING Py_IsFinalizing
#endif

#define FRAMES 8
static FILE *out;

static PyFrameObject *back(PyFrameObject *f)
{
#if PY_VERSION_HEX < 0x03090000
    Py_XINCREF(f->f_back);
    return f->f_back;
#else
    return PyFrame_GetBack(f);
#endif
}

static PyCodeObject *code_of(PyFrameObject *f)
{
#if PY_VERSION_HEX < 0x03090000
    Py_INCREF(f->f_code);
    return f->f_code;
#else
    return PyFrame_GetCode(f);
#endif
}

static void put_text(char *to, size_t room, PyObject *text)
{
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape") : NULL;
    PyErr_Clear();
    snprintf(to, room, "%s", bytes ? PyBytes_AS_STRING(bytes) : "?");
    Py_XDECREF(bytes);
}

static void put_frame(char *line, size_t room, PyFrameObject *f)
{
    char file[2048], name[2048];
    PyCodeObject *code = code_of(f);
    PyObject *qualified = PyObject_GetAttrString((PyObject *)code, "co_qualname");
    PyErr_Clear();
    put_text(file, sizeof file, code->co_filename);
    put_text(name, sizeof name, qualified ? qualified : code->co_name);
#if PY_VERSION_HEX < 0x030a0000
    int at = PyCode_Addr2Line(code, f->f_lasti); /* what f_lineno is without a trace function */
#else
    int at = PyFrame_GetLineNumber(f);
#endif
    snprintf(line, room, "%s|%s|%d|%d;", file, name, code->co_firstlineno, at > 0 ? at : 0);
    Py_XDECREF(qualified);
    Py_DECREF(code);
}

/* The chain as text; "-" without one, or at the interpreter's end. */
static void describe(char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    PyFrameObject *f = IS_FINALIZING() ? NULL : PyEval_GetFrame();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_XINCREF(f);
    for (int i = 0; f && i < FRAMES; i++) {
        put_frame(text + used, room - used, f);
        used += strlen(text + used);
        PyFrameObject *next = back(f);
        Py_DECREF(f);
        f = next;
    }
    Py_XDECREF(f);
    PyErr_Restore(type, value, trace);
    if (!used) snprintf(text, room, "-");
}

static void note(size_t bytes, const char *text)
{
    if (!out) return;
    fprintf(out, "%zu\t%s\n", bytes, text);
    fflush(out);
}

/* alloc(bytes, when): when 0: described first, lock released for the call; 1: described after; 2: the lock is kept. */
static PyObject *alloc(PyObject *self, PyObject *args)
{
    (void)self;
    Py_ssize_t bytes;
    int when = 0, r;
    char text[FRAMES * 4200];
    void *p = NULL;
    if (!PyArg_ParseTuple(args, "n|i", &bytes, &when)) return NULL;
    if (when != 1) describe(text, sizeof text);
    if (when == 2) {
        r = cudaMalloc(&p, (size_t)bytes);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        r = cudaMalloc(&p, (size_t)bytes);
        Py_END_ALLOW_THREADS;
    }
    if (when == 1) describe(text, sizeof text);
    note((size_t)bytes, text);
    cudaFree(p);
    return PyLong_FromLong(r);
}

typedef struct job { size_t bytes; PyObject *call; } job;

static void *natively(void *arg)
{
    void *p = NULL;
    cudaMalloc(&p, ((job *)arg)->bytes);
    cudaFree(p);
    return NULL;
}

static void *calling_back(void *arg)
{
    job *j = arg;
    natively(arg);
    PyGILState_STATE state = PyGILState_Ensure();
    void *p = NULL;
    cudaMalloc(&p, j->bytes + 1); /* a state, and no frame */
    cudaFree(p);
    PyObject *r = PyObject_CallObject(j->call, NULL);
    Py_XDECREF(r);
    PyErr_Clear();
    PyGILState_Release(state);
    return NULL;
}

/* native_thread(bytes, call): a thread that the interpreter does not know allocates `bytes`, becomes known, allocates bytes + 1, and calls. */
static PyObject *native_thread(PyObject *self, PyObject *args)
{
    (void)self;
    Py_ssize_t bytes;
    PyObject *call;
    pthread_t t;
    if (!PyArg_ParseTuple(args, "nO", &bytes, &call)) return NULL;
    job j = {(size_t)bytes, call};
    note(j.bytes, "-");
    note(j.bytes + 1, "-");
    Py_BEGIN_ALLOW_THREADS;
    pthread_create(&t, NULL, calling_back, &j);
    pthread_join(t, NULL);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* spin(seconds): alloc and free without the lock; with a daemon thread, across the interpreter's end. */
static PyObject *spin(PyObject *self, PyObject *args)
{
    (void)self;
    Py_ssize_t times;
    if (!PyArg_ParseTuple(args, "n", &times)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < times; i++) {
        void *p = NULL;
        if (cudaMalloc(&p, 256) == 0) cudaFree(p);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *open_file(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
    out = fopen(path, "a");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"alloc", alloc, METH_VARARGS, ""}, {"native_thread", native_thread, METH_VARARGS, ""}, {"spin", spin, METH_VARARGS, ""},
                                {"open", open_file, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot parts[] = {
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "probe", "", 0, methods, parts, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_probe(void) { return PyModuleDef_Init(&module); }
