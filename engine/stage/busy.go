// SPDX-License-Identifier: Apache-2.0

package stage

// BusyError ends a step that found its node in use, before it touched anything.
// The node is neither quarantined nor changed; what needs the step is not started.
type BusyError struct{ Err error }

// Error is the text of the wrapped error.
func (e *BusyError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *BusyError) Unwrap() error { return e.Err }
