// cusparseSpMV as a plain program times it: CSR with 32-bit indices, the default algorithm, binary32, L2
// overwritten before each product, CUDA events round it.
//
//     nvcc -O3 -o plain plain.cu -lcusparse
//     ./plain RUNS NAME...        names of generated matrices, as the server has them
//
// Prints a line for each matrix: its name, the mean, the median and the standard deviation in ms, the number of
// non-zeros.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <cusparse.h>

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        auto status = (call);                                                                          \
        if (static_cast<int>(status) != 0) {                                                           \
            std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(status)); \
            std::exit(1);                                                                              \
        }                                                                                              \
    } while (0)

struct Matrix {
    int rows = 0;
    std::vector<int> row_ptr{0}, columns;
};

// The number behind `name=`.
static long number(const std::string& text, const char* name) {
    auto at = text.find(std::string(name) + "=");
    if (at == std::string::npos) {
        std::fprintf(stderr, "%s: no %s\n", text.c_str(), name);
        std::exit(1);
    }
    return std::strtol(text.c_str() + at + std::strlen(name) + 1, nullptr, 10);
}

// Places of the entries; what their values are makes no difference to the time.
static Matrix made(const std::string& name) {
    Matrix matrix;
    auto end_row = [&] { matrix.row_ptr.push_back(static_cast<int>(matrix.columns.size())); };
    auto kind = name.substr(0, name.find(':'));
    if (kind == "poisson2d" || kind == "poisson3d") {
        long n = number(name, "nx"), planes = kind == "poisson3d" ? n : 1;
        for (long z = 0; z < planes; ++z)
            for (long y = 0; y < n; ++y)
                for (long x = 0; x < n; ++x) {
                    long row = (z * n + y) * n + x;
                    auto put = [&](bool there, long step) {
                        if (there) matrix.columns.push_back(static_cast<int>(row + step));
                    };
                    put(z > 0, -n * n), put(y > 0, -n), put(x > 0, -1), put(true, 0);
                    put(x + 1 < n, 1), put(y + 1 < n, n), put(z + 1 < planes, n * n);
                    end_row();
                }
    } else if (kind == "banded" || kind == "diagonal") {
        long n = number(name, "n"), half = kind == "banded" ? number(name, "half") : 0;
        for (long row = 0; row < n; ++row) {
            for (long column = std::max(0L, row - half); column <= std::min(n - 1, row + half); ++column)
                matrix.columns.push_back(static_cast<int>(column));
            end_row();
        }
    } else {
        std::fprintf(stderr, "%s: not made here\n", name.c_str());
        std::exit(1);
    }
    matrix.rows = static_cast<int>(matrix.row_ptr.size()) - 1;
    return matrix;
}

template <typename T>
static T* on_device(const std::vector<T>& values) {
    T* memory;
    CHECK(cudaMalloc(&memory, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

int main(int count, char** arguments) {
    int runs = count > 1 ? std::atoi(arguments[1]) : 0;
    if (runs < 1 || count < 3) {
        std::fprintf(stderr, "usage: plain RUNS NAME...\n");
        return 2;
    }
    int l2 = 0;
    CHECK(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    size_t flush_bytes = 2 * static_cast<size_t>(l2);
    void* flush;
    CHECK(cudaMalloc(&flush, flush_bytes));
    cusparseHandle_t handle;
    CHECK(cusparseCreate(&handle));
    cudaEvent_t before, after;
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (int index = 2; index < count; ++index) {
        Matrix matrix = made(arguments[index]);
        long nnz = static_cast<long>(matrix.columns.size());
        int *row_ptr = on_device(matrix.row_ptr), *columns = on_device(matrix.columns);
        float *values = on_device(std::vector<float>(nnz, 1.0f)), *x = on_device(std::vector<float>(matrix.rows, 1.0f)),
              *y = on_device(std::vector<float>(matrix.rows, 0.0f));
        cusparseSpMatDescr_t a;
        cusparseDnVecDescr_t from, to;
        CHECK(cusparseCreateCsr(&a, matrix.rows, matrix.rows, nnz, row_ptr, columns, values, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
        CHECK(cusparseCreateDnVec(&from, matrix.rows, x, CUDA_R_32F));
        CHECK(cusparseCreateDnVec(&to, matrix.rows, y, CUDA_R_32F));
        float one = 1, zero = 0;
        size_t bytes = 0;
        CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, from, &zero, to, CUDA_R_32F,
                                      CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
        void* workspace = nullptr;
        CHECK(cudaMalloc(&workspace, std::max<size_t>(bytes, 1)));
        std::vector<float> times;
        for (int run = -10; run < runs; ++run) {
            CHECK(cudaMemsetAsync(flush, run, flush_bytes));
            CHECK(cudaEventRecord(before));
            CHECK(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, from, &zero, to, CUDA_R_32F,
                               CUSPARSE_SPMV_ALG_DEFAULT, workspace));
            CHECK(cudaEventRecord(after));
            CHECK(cudaEventSynchronize(after));
            float ms;
            CHECK(cudaEventElapsedTime(&ms, before, after));
            if (run >= 0) times.push_back(ms);
        }
        double mean = 0, spread = 0;
        for (float ms : times) mean += ms / runs;
        for (float ms : times) spread += (ms - mean) * (ms - mean) / std::max(1, runs - 1);
        std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
        std::printf("%s %.6f %.6f %.6f %ld\n", arguments[index], mean, times[runs / 2], std::sqrt(spread), nnz);
        std::fflush(stdout);
        CHECK(cusparseDestroySpMat(a));
        CHECK(cusparseDestroyDnVec(from));
        CHECK(cusparseDestroyDnVec(to));
        for (void* memory : {static_cast<void*>(row_ptr), static_cast<void*>(columns), static_cast<void*>(values),
                             static_cast<void*>(x), static_cast<void*>(y), workspace})
            CHECK(cudaFree(memory));
    }
}
