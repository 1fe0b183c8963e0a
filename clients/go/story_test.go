package postern

// One day with the package against a real Postern: send, wait for the event, verify the webhook, walk over a list, meet each
// error. Played by test/clients/stories.long.test.ts; prints one line of JSON.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
)

const nobody = "01890000-0000-7000-8000-000000000000"

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func kindOf(err error) string {
	for _, one := range []struct {
		name string
		is   bool
	}{
		{"ValidationError", as[*ValidationError](err)},
		{"AuthenticationError", as[*AuthenticationError](err)},
		{"PermissionError", as[*PermissionError](err)},
		{"NotFoundError", as[*NotFoundError](err)},
		{"ConflictError", as[*ConflictError](err)},
		{"AllSuppressedError", as[*AllSuppressedError](err)},
		{"RateLimitError", as[*RateLimitError](err)},
		{"ConnectionError", as[*ConnectionError](err)},
		{"WebhookSignatureError", as[*WebhookSignatureError](err)},
	} {
		if one.is {
			return one.name
		}
	}
	return fmt.Sprint(err)
}

func as[T error](err error) bool {
	var kind T
	return errors.As(err, &kind)
}

type storyMail struct {
	ID      string `json:"email_id"`
	Event   string `json:"event"`
	Body    []byte `json:"body"`
	Headers map[string]string
}

func TestStory(t *testing.T) {
	hooks, secret := os.Getenv("STORY_HOOKS"), os.Getenv("STORY_SECRET")
	if hooks == "" {
		t.Skip("test/clients/stories.long.test.ts plays it")
	}
	ctx := context.Background()
	client := must[*Client](t)(New(Options{}))
	mail := SendRequest{From: "orders@shop.example", To: []string{"go@recipient.example"}, Subject: Ptr("A story"), TextBody: Ptr("Hello")}

	after := must[*EventList](t)(client.Events.List(ctx, ListEventsQuery{})).Next
	sent := must[*SendAnswer](t)(client.Emails.Send(ctx, mail))
	event := ""
	for event == "" {
		read := must[*EventList](t)(client.Events.List(ctx, ListEventsQuery{After: &after, Types: Ptr("email.delivered"), Wait: Ptr(int64(10))}))
		after = read.Next
		for _, one := range read.Events {
			var told struct {
				EmailID string `json:"email_id"`
			}
			if err := json.Unmarshal([]byte(one.Body), &told); err != nil {
				t.Fatal(err)
			}
			if told.EmailID == sent.ID {
				event = one.Event
			}
		}
	}
	answer := must[*http.Response](t)(http.Get(hooks + "/" + sent.ID))
	defer answer.Body.Close()
	var hook storyMail
	if err := json.NewDecoder(answer.Body).Decode(&hook); err != nil {
		t.Fatal(err)
	}
	header := hook.Headers["x-service-signature"]
	told := must[*Event](t)(VerifyWebhook(hook.Body, header, []string{secret}, WebhookOptions{}))

	ids, unique := 0, map[string]bool{}
	page := must[*Page[Email]](t)(client.Emails.List(ctx, ListEmailsQuery{Limit: Ptr(int64(2))}))
	for walk := page.Iterator(); walk.Next(ctx); ids++ {
		unique[walk.Item().ID] = true
	}
	line := must[[]byte](t)(json.Marshal(map[string]any{
		"id": sent.ID, "event": event, "webhook": told.EmailDeliveredEvent().EmailID, "ids": ids, "unique": len(unique),
		"errors": storyErrors(ctx, t, client, mail, hook.Body, header, secret),
	}))
	fmt.Printf("%s\n", line)
}

func storyErrors(ctx context.Context, t *testing.T, client *Client, mail SendRequest, body []byte, header, secret string) map[string]string {
	wrong := must[*Client](t)(New(Options{APIKey: "svc_live_wrong"}))
	nowhere := must[*Client](t)(New(Options{BaseURL: "http://127.0.0.1:1", MaxRetries: Ptr(0)}))
	limited := must[*Client](t)(New(Options{APIKey: os.Getenv("STORY_LIMITED_KEY"), MaxRetries: Ptr(0)}))
	if _, err := client.Suppressions.Add(ctx, AddSuppressionRequest{Email: "gone@recipient.example", Reason: Ptr("manual")}); err != nil {
		t.Fatal(err)
	}
	send := func(change func(*SendRequest)) string {
		changed := mail
		change(&changed)
		_, err := client.Emails.Send(ctx, changed)
		return kindOf(err)
	}
	_, authentication := wrong.Emails.List(ctx, ListEmailsQuery{})
	_, notFound := client.Emails.Get(ctx, nobody)
	_, conflict := client.Domains.Create(ctx, CreateDomainRequest{Domain: "shop.example", Type: Ptr("outbound")})
	_, connection := nowhere.Emails.List(ctx, ListEmailsQuery{})
	_, signature := VerifyWebhook(append(append([]byte{}, body...), body...), header, []string{secret}, WebhookOptions{})
	var rate error
	for asked := 0; asked < 50 && rate == nil; asked++ {
		_, rate = limited.Me.Get(ctx)
	}
	return map[string]string{
		"validation":     send(func(m *SendRequest) { m.To = []string{} }),
		"authentication": kindOf(authentication),
		"permission":     send(func(m *SendRequest) { m.From = "a@unknown.example" }),
		"not_found":      kindOf(notFound),
		"conflict":       kindOf(conflict),
		"all_suppressed": send(func(m *SendRequest) { m.To = []string{"gone@recipient.example"} }),
		"rate_limit":     kindOf(rate),
		"connection":     kindOf(connection),
		"signature":      kindOf(signature),
	}
}
