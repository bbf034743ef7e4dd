// SPDX-License-Identifier: Apache-2.0

package wire

import "bytes"

// FirstLine returns the first line of what somebody answered, at most 200 bytes of
// it, for an error's text.
func FirstLine(answer []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(answer), []byte("\n"))
	return string(line[:min(len(line), 200)])
}
