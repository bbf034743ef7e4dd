// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

const migs = `+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.10gb+me       20        9          6:1    |
+-------------------------------------------------------+
|   1  MIG 3g.40gb           9        2          0:4    |
+-------------------------------------------------------+
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   1      2       MIG 1c.3g.40gb       0*        1          0:1     |
+--------------------------------------------------------------------+
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.10gb       19     5/7        9.75       No     16     1     0   |
|                                                             1     1     0   |
+-----------------------------------------------------------------------------+
+--------------------------------------------------------------------------------------+
| Compute instance profiles:                                                           |
| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |
|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |
|         ID                                                          CE    JPEG       |
|======================================================================================|
|   1      2       MIG 3g.40gb          2*     0/1           46        3     0     0   |
|                                                                      3     3         |
+--------------------------------------------------------------------------------------+
`

func TestMIG(t *testing.T) {
	t.Parallel()
	v, p, err := ParseMIG([]byte(migs))
	if err != nil || len(p) > 0 || isMIG([]byte(migs)) < 80 {
		t.Fatalf("%v, %v", err, p)
	}
	is(t, "all", v, map[string]any{
		"gpu_instances": []map[string]any{
			{"gpu": 0, "profile": "1g.10gb+me", "profile_id": 20, "id": 9, "placement_start": 6, "placement_size": 1},
			{"gpu": 1, "profile": "3g.40gb", "profile_id": 9, "id": 2, "placement_start": 0, "placement_size": 4}},
		"compute_instances":         []map[string]any{{"gpu": 1, "gpu_instance": 2, "profile": "1c.3g.40gb", "profile_id": 0, "id": 1, "placement_start": 0, "placement_size": 1}},
		"gpu_instance_profiles":     []map[string]any{{"gpu": 0, "profile": "1g.10gb", "profile_id": 19, "free": 5, "total": 7, "memory_gib": 9.75, "sms": 16}},
		"compute_instance_profiles": []map[string]any{{"gpu": 1, "gpu_instance": 2, "profile": "3g.40gb", "profile_id": 2, "free": 0, "total": 1, "sms": 46}},
	})
	for in, want := range map[string]string{
		migs[:strings.Index(migs, "6:1")]:        "the row ends before its end",
		migs[:strings.Index(migs, "6:1    |")+8]: "without its last line",
	} {
		if _, p, err := ParseMIG([]byte(in)); err != nil || len(p) == 0 || p[0].Kind != tool.Truncated || !strings.Contains(p[0].Text, want) {
			t.Errorf("%q: %v, %v", want, err, p)
		}
	}
	for _, in := range []string{"No GPU instances found: Not Found\n", "No MIG-enabled devices found.\n"} {
		if v, p, err := ParseMIG([]byte(in)); err != nil || len(p) > 0 || isMIG([]byte(in)) == 0 || v.GPUInstances != nil {
			t.Errorf("%q: %v, %v", in, err, p)
		}
	}
}

func FuzzMIG(f *testing.F) {
	f.Add([]byte(migs))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := ParseMIG(b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(v); err != nil || len(v.Summary()) == 0 {
			t.Error(err)
		}
	})
}
