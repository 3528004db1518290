# Fits kernlab's Crammer-Singer machine to rows of a file, and prints what it took and reached.
#
# Rscript kernlab.R rows.csv C gamma tol megabytes
#
# The file has the class in its first column. Only ksvm() is timed.
#
# type="spoc-svc" solves the very problem that widemargin solves: there is no bias, C is the weight
# of the summed hinges (it is divided by nothing), and alpha() is the matrix of coefficients beta
# with a column for each class, rows that sum to zero, and at most C for a row's own class. On the
# first 300 rows of scikit-learn's digits with C 1 and gamma .001 they have a dual of 34.64831.
# tol is the largest violation of the optimality conditions of any row, not a duality gap. obj() is
# not set for this type: it returns whatever is in memory. So the objectives are computed here.

suppressMessages(library(kernlab))
arguments <- commandArgs(trailingOnly = TRUE)
rows <- as.matrix(read.csv(arguments[1], header = FALSE))
numbers <- as.numeric(arguments[-1])
C <- numbers[1]
gamma <- numbers[2]
X <- unname(rows[, -1])
y <- as.factor(rows[, 1])

# fit=FALSE: without it ksvm() would also predict the training rows.
seconds <- system.time(
  machine <- ksvm(
    X, y,
    type = "spoc-svc", kernel = "rbfdot", kpar = list(sigma = gamma), C = C,
    tol = numbers[3], cache = numbers[4], scaled = FALSE, fit = FALSE
  )
)[["elapsed"]]

beta <- alpha(machine)
own <- cbind(seq_along(y), as.integer(y))
scores <- kernelMatrix(rbfdot(sigma = gamma), X)@.Data %*% beta
squares <- sum(beta * scores)
excess <- 1 + scores - scores[own]
excess[own] <- 0
dual <- sum(beta[own]) - squares / 2
primal <- squares / 2 + C * sum(apply(excess, 1, max))
patterns <- sum(rowSums(beta != 0) > 0)
cat(sprintf("%.6f %.10g %.10g %d\n", seconds, dual, primal, as.integer(patterns)))
