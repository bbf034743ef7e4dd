// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"encoding/json"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// Versions is what amd-smi version says, and the heading of the table that amd-smi
// prints without a command.
type Versions struct {
	Tool    string `json:"tool,omitempty"`
	Library string `json:"library,omitempty"`
	ROCm    string `json:"rocm,omitempty"`
	Driver  string `json:"amdgpu,omitempty"`
}

var (
	versionLine = lazyregexp.New(`(?m)^\s*AMDSMI Tool: (\S+) \| AMDSMI Library version: (\S+) \| ROCm version: (\S+)(?: \| amdgpu version: (\S+))?`)
	versionJSON = lazyregexp.New(`"amdsmi_library_version"\s*:`)
)

// readVersions reads amd-smi version, as text and as JSON; nil if there is none.
func readVersions(b []byte) *Versions {
	m := versionLine.FindSubmatch(b)
	if m != nil {
		return versionsOf(string(m[1]), string(m[2]), string(m[3]), string(m[4]))
	}
	text, ok := jsontext.Find(b)
	if !versionJSON.Match(b) || !ok {
		return nil
	}
	var list []struct {
		Tool    string `json:"version"`
		Library string `json:"amdsmi_library_version"`
		ROCm    string `json:"rocm_version"`
		Driver  string `json:"amdgpu_version"`
	}
	if err := json.Unmarshal(text.Data, &list); err != nil || len(list) == 0 {
		return nil
	}
	return versionsOf(list[0].Tool, list[0].Library, list[0].ROCm, list[0].Driver)
}

func versionsOf(tool, library, rocm, driver string) *Versions {
	var v Versions
	v.Tool, _ = readValue(tool)
	v.Library, _ = readValue(library)
	v.ROCm, _ = readValue(rocm)
	v.Driver, _ = readValue(driver)
	return &v
}
