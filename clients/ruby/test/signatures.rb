# frozen_string_literal: true

# Plays the requests of the conformance set while RBS compares every call and every answer with the signatures in sig/. It
# ends with an error at the first that differs. RBS comes with Ruby 3.1 and later.
require "logger"

ENV["RBS_TEST_TARGET"] = "Postern,Postern::*"
ENV["RBS_TEST_OPT"] = "-I #{File.expand_path("../sig", __dir__)}"
ENV["RBS_TEST_LOGLEVEL"] = "error"
ENV["CONFORMANCE_GROUP"] ||= "requests"
gem "rbs"
require "rbs/test/setup"
require_relative "../lib/postern"

# RBS asks a value for its methods. A record answers for each of its fields without having a method.
module FieldsAsMethods
  def methods(*)
    super + keys.map(&:to_sym)
  end
end
Postern::Record.prepend(FieldsAsMethods)
RBS::Test.singleton_class.prepend(Module.new do
  def call(receiver, method, *arguments, &block)
    receiver.is_a?(Postern::Record) && method == RBS::Test::METHODS ? receiver.methods : super
  end
end)

fields = Dir[File.expand_path("../sig/generated/records.rbs", __dir__)].flat_map { |file| File.read(file).scan(/^    def (\w+):/).flatten }
taken = fields.uniq & Hash.public_instance_methods.map(&:to_s)
raise "a hash has methods of these names: add them to OF_HASH in clients/generate/ruby-signatures.ts: #{taken}" unless taken.empty?

load File.expand_path("conformance.rb", __dir__)
