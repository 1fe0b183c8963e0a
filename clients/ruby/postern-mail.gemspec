# frozen_string_literal: true

require_relative "lib/postern/version"

Gem::Specification.new do |spec|
  spec.name = "postern-mail"
  spec.version = Postern::VERSION
  spec.summary = "Client library for Postern: send e-mail, receive it by webhook, and give people masked addresses"
  spec.authors = ["Postern"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.0"
  spec.files = Dir["lib/**/*.rb", "sig/**/*.rbs"] + ["LICENSE", "README.md"]
  spec.require_paths = ["lib"]
end
