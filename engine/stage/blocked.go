// SPDX-License-Identifier: Apache-2.0

package stage

// BlockedError ends a step that something outside its node keeps from going on, of
// which the run has a finding. The node is not quarantined; what needs the step is
// not started, and the next run does it.
type BlockedError struct{ Err error }

// Error is the text of the wrapped error.
func (e *BlockedError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *BlockedError) Unwrap() error { return e.Err }
