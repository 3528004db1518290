// BLAS and LAPACK by plain loops, with the Fortran interface: matrices are stored by columns,
// `ld` elements apart. As the real ones do, they refuse a leading dimension that is too small, and
// do not read C where beta is 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "widemargin/blas.hpp"

namespace widemargin::tests {

template <class T>
struct FortranMatrix {
  T* data;
  std::size_t ld;
  bool transposed = false;

  T& operator()(int i, int j) const {
    const auto row = static_cast<std::size_t>(transposed ? j : i);
    const auto column = static_cast<std::size_t>(transposed ? i : j);
    return data[row + column * ld];
  }
};

template <class T>
FortranMatrix<T> fortran_matrix(const char* what, T* data, int stored_rows, int ld,
                                bool transposed = false) {
  if (ld < std::max(1, stored_rows)) {
    throw std::invalid_argument(std::string(what) + " has leading dimension " + std::to_string(ld) +
                                " for " + std::to_string(stored_rows) + " rows");
  }
  return {data, static_cast<std::size_t>(ld), transposed};
}

// C (m x n) = alpha op(A) op(B) + beta C
template <class T>
void gemm(char* transpose_a, char* transpose_b, int* m, int* n, int* k, T* alpha, T* a, int* lda,
          T* b, int* ldb, T* beta, T* c, int* ldc) {
  const bool ta = *transpose_a == 'T', tb = *transpose_b == 'T';
  const auto left = fortran_matrix("A of gemm", a, ta ? *k : *m, *lda, ta);
  const auto right = fortran_matrix("B of gemm", b, tb ? *n : *k, *ldb, tb);
  const auto out = fortran_matrix("C of gemm", c, *m, *ldc);
  for (int j = 0; j < *n; ++j) {
    for (int i = 0; i < *m; ++i) {
      T sum = 0;
      for (int l = 0; l < *k; ++l) sum += left(i, l) * right(l, j);
      out(i, j) = *beta == 0 ? *alpha * sum : *alpha * sum + *beta * out(i, j);
    }
  }
}

// One triangle of C (n x n) = alpha A A' + beta C, or of alpha A' A + beta C
template <class T>
void syrk(char* triangle, char* transpose, int* n, int* k, T* alpha, T* a, int* lda, T* beta, T* c,
          int* ldc) {
  const bool transposed = *transpose == 'T';
  const auto left = fortran_matrix("A of syrk", a, transposed ? *k : *n, *lda, transposed);
  const auto out = fortran_matrix("C of syrk", c, *n, *ldc);
  for (int j = 0; j < *n; ++j) {
    const int first = *triangle == 'U' ? 0 : j, last = *triangle == 'U' ? j : *n - 1;
    for (int i = first; i <= last; ++i) {
      T sum = 0;
      for (int l = 0; l < *k; ++l) sum += left(i, l) * left(j, l);
      out(i, j) = *beta == 0 ? *alpha * sum : *alpha * sum + *beta * out(i, j);
    }
  }
}

// A = U' U from its upper triangle ('U', the only one that the core asks for), in place. `info` is
// the 1-based column at which A turns out not to be positive definite, else 0.
inline void potrf(char*, int* n, double* a, int* lda, int* info) {
  const auto u = fortran_matrix("A of potrf", a, *n, *lda);
  *info = 0;
  for (int j = 0; j < *n; ++j) {
    for (int i = 0; i <= j; ++i) {
      double rest = u(i, j);
      for (int l = 0; l < i; ++l) rest -= u(l, i) * u(l, j);
      if (i == j && !(rest > 0)) {
        *info = j + 1;
        return;
      }
      u(i, j) = i == j ? std::sqrt(rest) : rest / u(i, i);
    }
  }
}

// Solves U' U X = B in place.
inline void potrs(char*, int* n, int* count, double* a, int* lda, double* b, int* ldb, int* info) {
  const auto u = fortran_matrix("A of potrs", a, *n, *lda);
  const auto x = fortran_matrix("B of potrs", b, *n, *ldb);
  *info = 0;
  for (int r = 0; r < *count; ++r) {
    for (int i = 0; i < *n; ++i) {
      for (int l = 0; l < i; ++l) x(i, r) -= u(l, i) * x(l, r);
      x(i, r) /= u(i, i);
    }
    for (int i = *n - 1; i >= 0; --i) {
      for (int l = i + 1; l < *n; ++l) x(i, r) -= u(i, l) * x(l, r);
      x(i, r) /= u(i, i);
    }
  }
}

// Solves U' X = B in place: of all that trsm can do, what the core asks for.
inline void trsm(char* side, char* triangle, char* transpose, char* unit, int* n, int* count,
                 double* alpha, double* a, int* lda, double* b, int* ldb) {
  if (*side != 'L' || *triangle != 'U' || *transpose != 'T' || *unit != 'N' || *alpha != 1) {
    throw std::invalid_argument("trsm was asked for something else than U' X = B");
  }
  const auto u = fortran_matrix("A of trsm", a, *n, *lda);
  const auto x = fortran_matrix("B of trsm", b, *n, *ldb);
  for (int r = 0; r < *count; ++r) {
    for (int i = 0; i < *n; ++i) {
      for (int l = 0; l < i; ++l) x(i, r) -= u(l, i) * x(l, r);
      x(i, r) /= u(i, i);
    }
  }
}

inline Blas reference_blas() {
  Blas blas;
  blas.sgemm = gemm<float>;
  blas.dgemm = gemm<double>;
  blas.ssyrk = syrk<float>;
  blas.dsyrk = syrk<double>;
  blas.dtrsm = trsm;
  blas.dpotrf = potrf;
  blas.dpotrs = potrs;
  return blas;
}

}  // namespace widemargin::tests
