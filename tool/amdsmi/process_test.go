// SPDX-License-Identifier: Apache-2.0

package amdsmi

import "testing"

func TestProcesses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"text": "GPU: 0\n    PROCESS_INFO: No running processes detected\n\nGPU: 1\n    PROCESS_INFO:\n        NAME: python3\n        PID: 4711\n        MEMORY_USAGE:\n            GTT_MEM: 4.0 KB\n            VRAM_MEM: 12.3 GB\n" +
			"    PROCESS_INFO:\n        NAME: rvs\n        PID: 4712\n        MEMORY_USAGE:\n            VRAM_MEM: 1.1 GB\n",
		"JSON": `[{"gpu": 0, "process_list": [{"process_info": "No running processes detected"}]},
{"gpu": 1, "process_list": [{"process_info": {"name": "python3", "pid": 4711, "memory_usage": {"vram_mem": {"value": 12.3, "unit": "GB"}}}},
 {"process_info": {"name": "rvs", "pid": 4712, "memory_usage": {"vram_mem": {"value": 1.1, "unit": "GB"}}}}]}]`,
	} {
		r, p, err := Parse([]byte(in))
		if err != nil || len(p) != 0 || len(r.GPUs) != 2 || len(r.GPUs[0].Processes) != 0 || len(r.GPUs[1].Processes) != 2 {
			t.Errorf("%s: %v, %v, %+v", name, err, p, r.GPUs)
			continue
		}
		if got := r.GPUs[1].Processes[0]; got != (Process{4711, "python3", "12.3 GB"}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
