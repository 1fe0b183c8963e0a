# frozen_string_literal: true

# A delivery method for Rails: `config.action_mailer.delivery_method = :postern`, and an application that sends with Action
# Mailer sends with Postern. Key and address come from `config.action_mailer.postern_settings = { api_key:, base_url: }`,
# else from POSTERN_API_KEY and POSTERN_BASE_URL. It is loaded with `gem "postern-mail", require: "postern/rails"`.
require_relative "../postern"

module Postern
  # Takes a message of the gem mail. `mail(…, delivery_method_options: { postern: { tags: ["receipt"] } })` gives fields that
  # mail has no place for.
  class DeliveryMethod
    # Postern writes these itself, or they have a field of their own.
    OWN = /\A(date|message-id|mime-version|content-.*|from|to|cc|bcc|reply-to|subject)\z/i

    attr_accessor :settings
    # The answer of the last delivery.
    attr_reader :answer

    def initialize(settings)
      @settings = settings
    end

    def deliver!(mail)
      fields = settings[:postern] || {}
      @answer = client.emails.send(**request_of(mail), **fields)
      # Postern's name of the message is the one that events bring.
      mail.message_id = "<#{@answer.message_id}>"
      @answer
    end

    def request_of(mail)
      request = { from: formatted(mail[:from]).first, **recipients(mail), subject: mail.subject }
      request.merge!(bodies(mail))
      reply_to = formatted(mail[:reply_to])
      request[:reply_to] = reply_to unless reply_to.empty?
      headers = headers_of(mail)
      request[:headers] = headers unless headers.empty?
      files = mail.attachments.map { |part| attachment(part) }
      request[:attachments] = files unless files.empty?
      request.compact
    end

    private

    def client
      given = settings[:client]
      return given if given

      options = settings.slice(:base_url, :timeout, :max_retries)
      @client ||= Client.new(settings[:api_key], **options)
    end

    # Who gets it is the envelope's word; the header fields say how they are shown.
    def recipients(mail)
      wanted = mail.smtp_envelope_to.to_h { |address| [address.downcase, address] }
      to, cc, bcc = [mail[:to], mail[:cc], mail[:bcc]].map do |field|
        formatted(field) { |address| wanted.delete(address.downcase) }
      end
      bcc += wanted.values
      to, cc = cc, [] if to.empty?
      to, bcc = bcc, [] if to.empty? && bcc.one?
      raise PosternError, "Postern needs a recipient in 'to'; send one mail to each who must not see the others" if to.empty?

      { to: to, cc: cc, bcc: bcc }.reject { |_name, addresses| addresses.empty? }
    end

    # The addresses of a field, with their names; those for which the block gives nothing are left out.
    def formatted(field)
      return [] if field.nil?

      field.addrs.filter_map do |one|
        next if block_given? && !yield(one.address)

        name = one.display_name && Mail::Encodings.value_decode(one.display_name)
        name ? "\"#{name.gsub(/["\\]/) { |sign| "\\#{sign}" }}\" <#{one.address}>" : one.address
      end
    end

    def bodies(mail)
      return { (mail.mime_type == "text/html" ? :html_body : :text_body) => mail.decoded } unless mail.multipart?

      { html_body: mail.html_part&.decoded, text_body: mail.text_part&.decoded }.compact
    end

    def headers_of(mail)
      mail.header.fields.reject { |field| OWN.match?(field.name) }.to_h { |field| [field.name, field.decoded.to_s] }
    end

    def attachment(part)
      found = {
        filename: part.filename,
        content: [part.body.decoded].pack("m0"),
        content_type: part.mime_type,
        disposition: part.inline? ? "inline" : "attachment"
      }
      found[:content_id] = part.content_id if part.content_id && part.inline?
      found
    end
  end
end

if defined?(::Rails::Railtie)
  module Postern
    # Makes :postern known to Action Mailer before the application's settings are read.
    class Railtie < ::Rails::Railtie
      initializer "postern.delivery_method", before: "action_mailer.set_configs" do
        ActiveSupport.on_load(:action_mailer) { add_delivery_method(:postern, Postern::DeliveryMethod) }
      end
    end
  end
elsif defined?(ActionMailer::Base)
  ActionMailer::Base.add_delivery_method(:postern, Postern::DeliveryMethod)
end
