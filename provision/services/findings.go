// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"sync"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
)

// MostFindings is how many findings of one kind about the site are made in a run; one
// more says that there were others.
const MostFindings = 16

// siteFindings are findings of one kind that the boot services make, each once and in
// a bounded number: whoever sends what they are about must not fill the state. It is
// safe for concurrent use.
type siteFindings struct {
	more  stage.Finding // of all beyond the bound
	found chan stage.Finding

	mu   sync.Mutex // guards seen
	seen map[string]bool
}

func newSiteFindings(more stage.Finding) *siteFindings {
	return &siteFindings{more: more, found: make(chan stage.Finding, MostFindings+1), seen: map[string]bool{}}
}

// add makes the finding of a key, if it is the first of that key. It never blocks:
// there is room for all that are made.
func (s *siteFindings) add(key string, finding func() stage.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[key] || len(s.seen) > MostFindings {
		return
	}
	f := s.more
	if len(s.seen) < MostFindings {
		f = finding()
	}
	s.seen[key] = true
	s.found <- f
}

// report passes the findings on, until ctx is done or that fails: the run has ended,
// or cannot record anything any more.
func (s *siteFindings) report(ctx context.Context, to func(context.Context, stage.Finding) error) {
	for {
		select {
		case f := <-s.found:
			if to(ctx, f) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// siteSuspect is something of the boot network that is no node.
func siteSuspect(network, part string) stage.Suspect {
	return stage.Suspect{Subject: subject.ID{Kind: subject.Site, Name: "network." + network}, Part: part}
}
