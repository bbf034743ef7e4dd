// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rehearsal_test

// racing says that the race detector makes everything some ten times slower.
const racing = false
