// SPDX-License-Identifier: Apache-2.0

package rvs_test

import (
	"testing"

	"github.com/ironrail/ironrail/tool/rvs"
)

// stressed is written after gst_worker.cpp and rvsliblogger.cpp.
const stressed = `[RESULT] [ 85477.123456] Action name :burn-in
[RESULT] [ 85477.123456] Module name :gst
[RESULT] [ 85477.2     ] [burn-in] [GPU:: 28851] Start of GPU ramp up
[RESULT] [ 85477.2     ] [burn-in] [GPU::  9021] Start of GPU ramp up
[RESULT] [ 85482.2     ] [burn-in] [GPU:: 28851] End of GPU ramp up
[RESULT] [ 85542.2     ] [burn-in] [GPU:: 28851] GFLOPS 81233
[RESULT] [ 85602.2     ] [burn-in] [GPU:: 28851] GFLOPS 81235
[RESULT] [ 85603.2     ] [burn-in] [GPU:: 28851] self-check error 0.0000000001
[RESULT] [ 87277.2     ] [burn-in] [GPU:: 28851] GFLOPS 81290 Target GFLOPS: 1 met: TRUE
[RESULT] [ 87277.2     ] [burn-in] [GPU::  9021] GFLOPS 0 Target GFLOPS: 1 met: FALSE
[ERROR ] [ 87278.2     ] [burn-in] gst 9021 HIP error
`

func TestParseStress(t *testing.T) {
	t.Parallel()
	s, err := rvs.ParseStress([]byte(stressed))
	if err != nil || len(s.GPUs) != 2 || len(s.Errors) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if g := s.GPUs[0]; g != (rvs.StressGPU{ID: 28851, GFLOPS: 81290, Mean: 81234, Done: true, Met: true, Wrong: 1}) {
		t.Errorf("%+v", g)
	}
	if g := s.GPUs[1]; g != (rvs.StressGPU{ID: 9021, Done: true}) {
		t.Errorf("%+v", g)
	}
	if _, err := rvs.ParseStress([]byte("rvs: command not found\n")); err == nil {
		t.Error("nothing was read, and no error")
	}
}

func FuzzParseStress(f *testing.F) {
	f.Add([]byte(stressed))
	f.Add([]byte("[RESULT] [ ] [a] [GPU:: 99999999999999999999] GFLOPS 1\n[ERROR ]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := rvs.ParseStress(b)
		if err == nil && len(s.GPUs) == 0 && len(s.Errors) == 0 {
			t.Error("nothing was read, and no error")
		}
	})
}
