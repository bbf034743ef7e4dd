package provision

import (
	"context"
	"errors"

	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/inventory"
)

type repositories struct {
	site *Site
	root string
}

func (r repositories) Ensure(ctx context.Context, d *inventory.Driver, image string, say func(string)) (inbox.Repository, error) {
	return inbox.Repository{}, errors.New("no repo")
}
func (r repositories) Find(ctx context.Context, d *inventory.Driver, image string) (inbox.Repository, bool, error) {
	return inbox.Repository{}, false, nil
}
