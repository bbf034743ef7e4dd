// SPDX-License-Identifier: Apache-2.0

package shell

import "sync"

// mostKept is how many scripts are kept, and longestKept how many bytes each may have.
const mostKept, longestKept = 512, 16 << 10

// kept are scripts by their text. They are never changed once read, so that any
// number of shells may run them at once.
var kept scripts

type scripts struct {
	mu  sync.Mutex // guards all
	all map[string]*Script
}

func (k *scripts) get(src string) *Script {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[src]
}

// put keeps a script, and forgets the others when they are too many.
func (k *scripts) put(src string, s *Script) {
	if len(src) > longestKept {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) >= mostKept || k.all == nil {
		k.all = map[string]*Script{}
	}
	k.all[src] = s
}
