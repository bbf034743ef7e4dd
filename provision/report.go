package provision

import (
	"context"

	"github.com/ironrail/ironrail/provision/state"
)

// SaveReport writes the report of the site beside the state.
func (s *Site) SaveReport(ctx context.Context, r state.Reader) error {
	return nil
}
