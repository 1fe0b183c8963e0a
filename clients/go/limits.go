package postern

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"sync/atomic"
	"time"
)

// longPoll is what the server was asked to wait before it answers (Events.List).
func longPoll(call call) time.Duration {
	query := reflect.ValueOf(call.query)
	if call.query == nil || query.Kind() != reflect.Struct {
		return 0
	}
	wait := queryField(query, "wait")
	if !wait.IsValid() || wait.Kind() != reflect.Pointer || wait.IsNil() || !wait.Elem().CanInt() {
		return 0
	}
	return time.Duration(wait.Elem().Int()) * time.Second
}

// timeLimit is the time that one try may take, or each piece of a download.
type timeLimit struct {
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelFunc
	isOver  atomic.Bool
}

func newTimeLimit(timeout time.Duration, cancel context.CancelFunc) *timeLimit {
	limit := &timeLimit{timeout: timeout, cancel: cancel}
	limit.timer = time.AfterFunc(timeout, func() {
		limit.isOver.Store(true)
		cancel()
	})
	return limit
}

func (l *timeLimit) end() {
	l.timer.Stop()
	l.cancel()
}

// limitedBody ends the time limit with the body. Each piece of a download has the whole of it again, so that a long one is
// not cut where a short one is not; what breaks it is one of the package's errors.
type limitedBody struct {
	io.ReadCloser
	limit       *timeLimit
	ctx         context.Context
	isEachPiece bool
}

func (b *limitedBody) Read(into []byte) (int, error) {
	if !b.isEachPiece {
		return b.ReadCloser.Read(into)
	}
	b.limit.timer.Reset(b.limit.timeout)
	n, err := b.ReadCloser.Read(into)
	b.limit.timer.Stop()
	if err != nil && err != io.EOF {
		err = brokenBy(b.ctx, b.limit, err)
	}
	return n, err
}

func (b *limitedBody) Close() error {
	defer b.limit.end()
	return b.ReadCloser.Close()
}

// brokenBy says which way no answer came: the caller stopped, the time was over, or the connection broke.
func brokenBy(ctx context.Context, limit *timeLimit, err error) error {
	var known *ConnectionError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case limit.isOver.Load() || errors.Is(err, context.DeadlineExceeded):
		return &TimeoutError{ConnectionError{fmt.Sprintf("no answer within %s", limit.timeout), err}}
	default:
		return &ConnectionError{"the connection failed: " + reasonOf(err), err}
	}
}

func reasonOf(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err.Error()
	}
	return err.Error()
}
