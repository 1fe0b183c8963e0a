//go:build go1.23

package postern

import (
	"context"
	"iter"
)

// All items of this page and those behind it, for range.
func (p *Page[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		walk := p.Iterator()
		for walk.Next(ctx) {
			if !yield(walk.Item(), nil) {
				return
			}
		}
		if err := walk.Err(); err != nil {
			var none T
			yield(none, err)
		}
	}
}
