// The few BLAS and LAPACK routines that the core calls, as pointers with the Fortran interface: the
// Python package hands over SciPy's own, so nothing else is linked; the native tests hand over
// plain loops.
#pragma once

#include <cstddef>
#include <type_traits>

namespace widemargin {

template <class T>
using Gemm = void (*)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
template <class T>
using Syrk = void (*)(char*, char*, int*, int*, T*, T*, int*, T*, T*, int*);
using Trsm = void (*)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*,
                      int*);
using Potrf = void (*)(char*, int*, double*, int*, int*);
using Potrs = void (*)(char*, int*, int*, double*, int*, double*, int*, int*);

struct Blas {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  Syrk<float> ssyrk = nullptr;
  Syrk<double> dsyrk = nullptr;
  Trsm dtrsm = nullptr;
  Potrf dpotrf = nullptr;
  Potrs dpotrs = nullptr;

  // C (m x n) = alpha * op(A) op(B) + beta * C for row-major matrices; a stride is the distance
  // between rows. Fortran sees the transposes, so the operands change places.
  template <class T>
  void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
            T alpha, const T* a, std::size_t stride_a, const T* b, std::size_t stride_b, T beta,
            T* c, std::size_t stride_c) const {
    if (m == 0 || n == 0) return;
    char ta = transpose_a ? 'T' : 'N', tb = transpose_b ? 'T' : 'N';
    int im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
    int lda = static_cast<int>(stride_a), ldb = static_cast<int>(stride_b),
        ldc = static_cast<int>(stride_c);
    if constexpr (std::is_same_v<T, float>) {
      sgemm(&tb, &ta, &in, &im, &ik, &alpha, const_cast<T*>(b), &ldb, const_cast<T*>(a), &lda,
            &beta, c, &ldc);
    } else {
      dgemm(&tb, &ta, &in, &im, &ik, &alpha, const_cast<T*>(b), &ldb, const_cast<T*>(a), &lda,
            &beta, c, &ldc);
    }
  }

  // C (n x n, row-major, lower triangle) += A' A for A (rows x n).
  template <class T>
  void add_gram(std::size_t n, std::size_t rows, const T* a, std::size_t stride_a, T* c) const {
    char upper = 'U', plain = 'N';
    int in = static_cast<int>(n), ik = static_cast<int>(rows), lda = static_cast<int>(stride_a);
    T one = 1;
    if (n > 0 && rows > 0)
      syrk<T>(&upper, &plain, &in, &ik, &one, const_cast<T*>(a), &lda, &one, c, &in);
  }

  // C (n x n, row-major, lower triangle) -= A A' for A (n x columns); both with rows `stride`
  // apart.
  void subtract_outer(std::size_t n, std::size_t columns, const double* a, double* c,
                      std::size_t stride) const {
    char upper = 'U', transposed = 'T';
    int in = static_cast<int>(n), ik = static_cast<int>(columns), ld = static_cast<int>(stride);
    double minus_one = -1.0, one = 1.0;
    if (n > 0 && columns > 0) {
      dsyrk(&upper, &transposed, &in, &ik, &minus_one, const_cast<double*>(a), &ld, &one, c, &ld);
    }
  }

  // Cholesky factor of the leading n x n part of a symmetric matrix whose row-major lower triangle
  // is filled, in place; rows are `stride` apart. False: not positive.
  bool cholesky(std::size_t n, double* a, std::size_t stride) const {
    char upper = 'U';
    int in = static_cast<int>(n), ld = static_cast<int>(stride), info = 0;
    if (n > 0) dpotrf(&upper, &in, a, &ld, &info);
    return info == 0;
  }

  // Solves L x = right with such a factor for `count` right-hand sides, each a row of n numbers, in
  // place.
  void forward_solve(std::size_t n, std::size_t count, const double* factor, std::size_t stride,
                     double* right, std::size_t right_stride) const {
    char left = 'L', upper = 'U', transposed = 'T', not_unit = 'N';
    int in = static_cast<int>(n), ic = static_cast<int>(count);
    int ld = static_cast<int>(stride), ldr = static_cast<int>(right_stride);
    double one = 1.0;
    if (n > 0 && count > 0) {
      dtrsm(&left, &upper, &transposed, &not_unit, &in, &ic, &one, const_cast<double*>(factor), &ld,
            right, &ldr);
    }
  }

  // Solves with such a factor for `count` right-hand sides, each of n contiguous numbers, in place.
  void cholesky_solve(std::size_t n, std::size_t count, const double* factor, double* right) const {
    char upper = 'U';
    int in = static_cast<int>(n), ic = static_cast<int>(count), info = 0;
    if (n > 0 && count > 0)
      dpotrs(&upper, &in, &ic, const_cast<double*>(factor), &in, right, &in, &info);
  }

 private:
  template <class T, class... Arguments>
  void syrk(Arguments... arguments) const {
    if constexpr (std::is_same_v<T, float>) {
      ssyrk(arguments...);
    } else {
      dsyrk(arguments...);
    }
  }
};

}  // namespace widemargin
