# frozen_string_literal: true

# An application that sends with Rails, switched to Postern: the mail that every framework's test sends. Played by
# test/clients/frameworks.long.test.ts; prints one line of JSON.
require "json"
require "rails"
require "action_mailer/railtie"
require_relative "../lib/postern/rails"

class Application < Rails::Application
  config.eager_load = false
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(nil)
  config.root = __dir__
  config.action_mailer.delivery_method = :postern
  config.action_mailer.postern_settings = {
    api_key: ENV.delete("POSTERN_API_KEY"),
    base_url: ENV.delete("POSTERN_BASE_URL")
  }
end
Application.initialize!

class Orders < ActionMailer::Base
  def receipt
    headers["X-Order"] = "17"
    attachments["Größe.txt"] = "Maß 17\n"
    attachments.inline["logo.png"] = ENV.fetch("PNG").unpack1("m")
    mail(
      from: '"Käse & Co" <orders@shop.example>', to: '"Anna, Größe" <anna@recipient.example>',
      cc: "carl@recipient.example", bcc: "bea@recipient.example", reply_to: "help@shop.example",
      subject: "Grüße aus Łódź",
      delivery_method_options: { postern: { tags: ["receipt"], metadata: { order: "17" } } }
    ) do |format|
      format.text { render plain: "Schöne Grüße\n" }
      format.html { render html: "<p>Schöne Grüße <img src=\"#{attachments["logo.png"].url}\"></p>".html_safe }
    end
  end

  def plain(**fields)
    mail(from: "orders@shop.example", subject: "s", body: "t", **fields)
  end
end

def failure
  yield
  nil
rescue StandardError => error
  error
end

sent = Orders.receipt.deliver_now
single = Orders.plain(to: "eva@recipient.example", subject: "Two").deliver_now
message = Orders.plain(to: "anna@recipient.example", cc: "carl@recipient.example", subject: "Envelope").message
message.smtp_envelope_to = "dora@recipient.example"
message.deliver
refused = failure { Orders.plain(from: "a@unknown.example", to: "anna@recipient.example").deliver_now }
blind = failure { Orders.plain(bcc: %w[a@recipient.example b@recipient.example]).deliver_now }
puts JSON.generate(
  message_id: "<#{sent.message_id}>", single: single.message_id, envelope_message_id: "<#{message.message_id}>",
  refused: [refused.class.name, refused.respond_to?(:code) ? refused.code : nil], blind: blind&.message
)
