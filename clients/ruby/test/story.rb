# frozen_string_literal: true

# One day with the library against a real Postern: send, wait for the event, verify the webhook, walk over a list, meet each
# error. Played by test/clients/stories.long.test.ts; prints one line of JSON.
require "json"
require "net/http"
require_relative "../lib/postern"

NOBODY = "01890000-0000-7000-8000-000000000000"
SECRET = ENV.fetch("STORY_SECRET")
postern = Postern::Client.new
mail = { from: "orders@shop.example", to: ["ruby@recipient.example"], subject: "A story", text_body: "Hello" }

after = postern.events.list.next
sent = postern.emails.send(**mail)
event = nil
until event
  read = postern.events.list(after: after, types: "email.delivered", wait: 10)
  after = read.next
  event = read.events.find { |one| JSON.parse(one.body)["email_id"] == sent.id }
end
hook = JSON.parse(Net::HTTP.get(URI("#{ENV.fetch("STORY_HOOKS")}/#{sent.id}")))
body = hook["body"].unpack1("m")
header = hook["headers"]["x-service-signature"]
told = Postern::Webhooks.verify(body, header, SECRET)
ids = postern.emails.list(limit: 2).map(&:id)

def kind_of
  yield
  "none"
rescue Postern::PosternError => e
  e.class.name.delete_prefix("Postern::")
end

postern.suppressions.add(email: "gone@recipient.example", reason: "manual")
limited = Postern::Client.new(ENV.fetch("STORY_LIMITED_KEY"), max_retries: 0)
errors = {
  validation: kind_of { postern.emails.send(**mail, to: []) },
  authentication: kind_of { Postern::Client.new("svc_live_wrong").emails.list.first },
  permission: kind_of { postern.emails.send(**mail, from: "a@unknown.example") },
  not_found: kind_of { postern.emails.get(NOBODY) },
  conflict: kind_of { postern.domains.create(domain: "shop.example", type: "outbound") },
  all_suppressed: kind_of { postern.emails.send(**mail, to: ["gone@recipient.example"]) },
  rate_limit: kind_of { 50.times { limited.me.get } },
  connection: kind_of { Postern::Client.new(base_url: "http://127.0.0.1:1", max_retries: 0).emails.list.first },
  signature: kind_of { Postern::Webhooks.verify(body + body, header, SECRET) }
}
puts JSON.generate(id: sent.id, event: event.event, webhook: told.email_id, ids: ids.size, unique: ids.uniq.size, errors: errors)
