# frozen_string_literal: true

module Postern
  # A client. Keep one for the whole program; it holds no state but its settings. What is not given comes from
  # POSTERN_API_KEY and POSTERN_BASE_URL.
  class Client < Generated::Resources
    # @param timeout [Numeric] seconds for each try
    # @param max_retries [Integer] tries after the first
    # @param logger [#call] gets a hash for each try: method, path, attempt, error, ms
    def initialize(api_key = nil, **settings)
      @transport = Transport.new(api_key: api_key, **settings)
      super(@transport)
    end

    # Any operation, also one that this version does not know: `client.request("GET", "/v1/new-thing", query: {…})`.
    def request(method, path, query: {}, json: nil, **options)
      keyed = !options[:idempotency_key].nil?
      @transport.request(method.to_s.upcase, path, query: query, json: json, idempotent: keyed, options: options)
    end
  end

  # An attachment for `emails.send` from a file on the disk; `fields` are its other fields, such as content_type.
  def self.attachment_from_file(path, **fields)
    { filename: File.basename(path), **fields, content: [File.binread(path)].pack("m0") }
  end
end
