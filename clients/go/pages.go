package postern

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
)

// Page of a list. Pages are asked for by cursor (After), which does not move when rows are added meanwhile; an Offset is for the
// first page only.
type Page[T any] struct {
	Items []T
	// Total is how many rows there are in all; at least so many where TotalIsAtLeast.
	Total          int
	TotalIsAtLeast bool
	HasMore        bool
	next           func(context.Context) (*Page[T], error)
}

// Next is the page behind it; nil on the last.
func (p *Page[T]) Next(ctx context.Context) (*Page[T], error) {
	if !p.HasMore {
		return nil, nil
	}
	return p.next(ctx)
}

// Iterator walks over all items of this page and those behind it, each page asked for when it is needed.
type Iterator[T any] struct {
	page *Page[T]
	at   int
	err  error
}

// Iterator of this page and those behind it.
func (p *Page[T]) Iterator() *Iterator[T] { return &Iterator[T]{page: p, at: -1} }

// Next goes to the next item; false when there is none, or after an error.
func (i *Iterator[T]) Next(ctx context.Context) bool {
	for i.at++; i.page != nil && i.at >= len(i.page.Items); i.at = 0 {
		i.page, i.err = i.page.Next(ctx)
	}
	return i.page != nil
}

// Item that Next went to.
func (i *Iterator[T]) Item() T { return i.page.Items[i.at] }

// Err says why Next was false, where it was not the end.
func (i *Iterator[T]) Err() error { return i.err }

type listing struct {
	name   string
	cursor bool
}

const pageLimit = 50

// listPage asks for a page. The query is a struct with "query" tags.
func listPage[T any](ctx context.Context, t *transport, call call, list listing, options []RequestOption) (*Page[T], error) {
	var answer map[string]json.RawMessage
	if _, err := t.json(ctx, call, &answer, options); err != nil {
		return nil, err
	}
	var meta struct {
		total, limit, offset int
		atLeast              bool
	}
	meta.limit = pageLimit
	page := &Page[T]{}
	for name, into := range map[string]any{"total": &meta.total, "limit": &meta.limit, "offset": &meta.offset, "total_is_at_least": &meta.atLeast, list.name: &page.Items} {
		if raw, ok := answer[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, &ConnectionError{Message: fmt.Sprintf("the answer's %s cannot be read", name), Cause: err}
			}
		}
	}
	if page.Items == nil {
		return nil, lacks(list.name)
	}
	page.Total, page.TotalIsAtLeast = meta.total, meta.atLeast
	end := meta.offset + len(page.Items)
	isLast := len(page.Items) == 0 || len(page.Items) < meta.limit
	// With a cursor the answer's total counts rows before it, too.
	if !hasQuery(call.query, "after") && !meta.atLeast && end >= meta.total {
		isLast = true
	}
	page.HasMore = !isLast
	if page.HasMore {
		call.query = nextQuery(call.query, list.cursor, answer[list.name], end)
		page.next = func(ctx context.Context) (*Page[T], error) { return listPage[T](ctx, t, call, list, options) }
	}
	return page, nil
}

func hasQuery(query any, name string) bool {
	field := queryField(reflect.ValueOf(query), name)
	return field.IsValid() && !field.IsNil()
}

func queryField(query reflect.Value, name string) reflect.Value {
	for at := 0; at < query.NumField(); at++ {
		if query.Type().Field(at).Tag.Get("query") == name {
			return query.Field(at)
		}
	}
	return reflect.Value{}
}

// nextQuery is the same query with the cursor behind the last row, or the offset where the list has no cursor.
func nextQuery(query any, cursor bool, items json.RawMessage, end int) any {
	next := reflect.New(reflect.TypeOf(query)).Elem()
	next.Set(reflect.ValueOf(query))
	offset, after := queryField(next, "offset"), queryField(next, "after")
	if offset.IsValid() {
		offset.SetZero()
	}
	var rows []struct {
		ID string `json:"id"`
	}
	if cursor && after.IsValid() && json.Unmarshal(items, &rows) == nil && rows[len(rows)-1].ID != "" {
		after.Set(reflect.ValueOf(Ptr(rows[len(rows)-1].ID)))
	} else if offset.IsValid() {
		offset.Set(reflect.ValueOf(Ptr(int64(end))))
	}
	return next.Interface()
}
