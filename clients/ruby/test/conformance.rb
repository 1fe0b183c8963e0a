# frozen_string_literal: true

# Plays the conformance set (clients/conformance). CONFORMANCE_URL is the recording server. Prints what failed, and last
# one line: {"cases","passed","failed"}. With CONFORMANCE_GROUP it plays the cases of one group.
require "json"
require "net/http"
require_relative "../lib/postern"

URL = ENV.fetch("CONFORMANCE_URL")
OPERATIONS = JSON.parse(File.read(File.join(__dir__, "../../conformance/operations.json")))
KEY = "svc_test_conformance"
BACKOFF_S_MAX = 8
RUNNER = "ruby-#{RUBY_VERSION.tr(".", "-")}"

def fetch(path)
  JSON.parse(Net::HTTP.get(URI(URL + path)))
end

def client_of(given, base, waits)
  %w[POSTERN_API_KEY POSTERN_BASE_URL].each { |name| ENV.delete(name) }
  (given["env"] || {}).each { |name, value| ENV[name] = value.sub("$base", base) }
  settings = { sleeper: ->(seconds) { waits << seconds } }
  settings[:base_url] = (given["base_url"] || "$base").sub("$base", base) unless given.key?("base_url") && given["base_url"].nil?
  settings[:timeout] = given["timeout_ms"] / 1000.0 if given["timeout_ms"]
  settings[:max_retries] = given["max_retries"] if given["max_retries"]
  settings[:headers] = given["headers"] if given["headers"]
  Postern::Client.new(given.fetch("api_key", KEY), **settings)
end

def perform(client, call)
  if call["twice"]
    perform(client, call["twice"])
    return perform(client, call["twice"])
  end
  if call["request"]
    asked = call["request"]
    return client.request(asked["method"], asked["path"], query: asked["query"] || {}, json: asked["json"])
  end
  place = OPERATIONS.fetch(call["op"])
  target = place["resource"].reduce(client) { |at, name| at.public_send(name) }
  values = place["path"].map { |name| call["path"][name] }
  values << call["bytes_base64"].unpack1("m") if place["input"] == "bytes"
  values << call["input"] if place["input"] == "json" && call.key?("input")
  named = place["input"] == "query" ? (call["input"] || {}).transform_keys(&:to_sym) : {}
  named[:options] = call["options"].transform_keys(&:to_sym) if call["options"]
  piecewise = call["piecewise"] ? ->(_piece) {} : nil
  target.public_send(place["method"], *values, **named, &piecewise)
end

def result_of(client, one)
  result = perform(client, one["call"])
  outcome = one["outcome"]
  if outcome["page"]
    return { "page" => { "items" => result.items, "total" => result.total, "has_more" => result.has_more } }
  end
  if result.is_a?(Postern::Page)
    take = one["call"]["take"]
    return { "items" => take ? result.first(take) : result.to_a }
  end
  return { "return_base64" => [result].pack("m0") } if outcome.key?("return_base64")

  meta = outcome["response"] ? result.response : nil
  response = meta && { "status" => meta.status, "request_id" => meta.request_id,
                       "rate_limit" => meta.rate_limit&.to_h&.transform_keys(&:to_s) }
  { "return" => result, "response" => response }
end

def play(one, base)
  waits = []
  if one["call"]["verify"]
    asked = one["call"]["verify"]
    named = { now: asked["now"], tolerance: asked["tolerance"] }.compact
    event = Postern::Webhooks.verify(asked["body_base64"].unpack1("m"), asked["header"], asked["secrets"], **named)
    return [{ "event" => event }, waits]
  end
  [result_of(client_of(one["client"] || {}, base, waits), one), waits]
rescue StandardError => e
  [{ "raised" => e }, waits]
end

def expect(value, message)
  raise message unless value
end

def check_raised(wanted, raised, got)
  expect(raised, "nothing was raised: #{got}")
  expect(raised.class.name == "Postern::#{wanted["class"]}", "#{raised.class}: #{raised.message}")
  wanted.each do |name, value|
    expect(raised.public_send(name) == value, "#{name} is #{raised.public_send(name).inspect}") unless name == "class"
  end
  shown = [raised.message, raised.inspect, raised.full_message, raised.instance_variables.map { |name| raised.instance_variable_get(name).inspect }]
  expect(!shown.join.include?(KEY), "the error shows the key")
end

def check(one, got, waits)
  outcome = one["outcome"]
  if outcome["raise"] then check_raised(outcome["raise"], got["raised"], got)
  elsif got["raised"] then raise got["raised"]
  else outcome.each { |name, value| expect(got[name] == value, "#{name} is #{got[name].inspect}") }
  end
  return unless one["waits"]

  expect(waits.length == one["waits"].length, "waits #{waits}")
  waits.zip(one["waits"]) do |wait, wanted|
    expect(wanted == "backoff" ? wait.positive? && wait <= BACKOFF_S_MAX : wait == wanted, "waits #{waits}")
  end
end

cases = fetch("/cases").each_with_index.to_a
cases.select! { |one, _index| one["group"] == ENV["CONFORMANCE_GROUP"] } if ENV["CONFORMANCE_GROUP"]
failed = 0
cases.each do |one, index|
  check(one, *play(one, "#{URL}/case/#{RUNNER}/#{index}"))
  next if one["call"]["verify"]

  problems = fetch("/verdict/#{RUNNER}/#{index}")["problems"]
  expect(problems.empty?, problems.join("; "))
rescue StandardError => e
  failed += 1
  puts "✖ #{one["name"]}: #{e.class} #{e.message}"
end
puts JSON.generate({ cases: cases.length, passed: cases.length - failed, failed: failed })
exit(failed.zero? ? 0 : 1)
