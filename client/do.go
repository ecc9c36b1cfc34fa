package client

import (
	"context"
	"iter"

	"clove.run/clove/api"
)

// Do calls a method that has one answer. Streams are for Each, sessions for Open.
func Do[P, R any](ctx context.Context, c *Client, row api.Row[P, R], params P) (result R, err error) {
	err = c.Call(ctx, row.Name, params, &result)
	return result, err
}

// Perform is Do for a method whose answer has no content.
func Perform[P any](ctx context.Context, c *Client, row api.Row[P, api.Nothing], params P) error {
	return c.Call(ctx, row.Name, params, nil)
}

// Each calls a stream and passes each of its notifications, which have the type N, to each. An
// error of each ends the stream and is returned.
func Each[P, R, N any](ctx context.Context, c *Client, row api.Row[P, R], params P, each func(N) error) (result R, err error) {
	err = c.Stream(ctx, row.Name, params, &result, notes(each))
	return result, err
}

// All calls a method that lists in parts, each of which continues at the cursor K of the one before,
// and yields the items of all parts. It asks for a part when the one before has been consumed.
// An error comes last, without an item. A server that returns the same cursor again and again is
// asked until ctx ends.
func All[P interface{ WithAfter(K) P }, R interface{ Part() ([]T, K) }, T any, K comparable](ctx context.Context, c *Client, row api.Row[P, R], params P) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			part, err := Do(ctx, c, row, params)
			if err != nil {
				yield(*new(T), err)
				return
			}
			items, next := part.Part()
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == *new(K) {
				return
			}
			params = params.WithAfter(next)
		}
	}
}

// Collect returns the items of All, or its error and none.
func Collect[T any](all iter.Seq2[T, error]) (items []T, err error) {
	for item, err := range all {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
