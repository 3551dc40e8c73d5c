module Test
  module Unit
    class AssertionFailedError < StandardError; end

    class TestCase
      @@cases = []
      def self.inherited(child)
        super
        @@cases << child
      end

      def self.adjudge_cases
        @@cases
      end

      def setup; end

      def teardown; end

      def assert(holds, message = nil)
        raise AssertionFailedError, (message || 'Assertion failed').to_s unless holds
      end

      def assert_equal(expected, actual, message = nil)
        assert(expected == actual, "#{message} Assertion failed: #{expected.inspect} expected, got #{actual.inspect}")
      end

      def assert_not_equal(expected, actual, message = nil)
        assert(expected != actual, "#{message} Assertion failed: got #{actual.inspect}")
      end

      def assert_true(actual, message = nil)
        assert_equal(true, actual, message)
      end

      def assert_false(actual, message = nil)
        assert_equal(false, actual, message)
      end

      def assert_nil(actual, message = nil)
        assert_equal(nil, actual, message)
      end

      def assert_in_delta(expected, actual, delta = 0.001, message = nil)
        assert((expected.to_f - actual.to_f).abs <= delta.to_f, message)
      end

      def assert_raise(*kinds)
        yield
      rescue *(kinds.empty? ? [StandardError] : kinds) => error
        error
      else
        assert(false, 'Assertion failed: nothing was raised')
      end
    end
  end
end

module AdjudgeTestUnit
  def self.passed?
    count = 0
    Test::Unit::TestCase.adjudge_cases.each do |kind|
      kind.public_instance_methods(true).grep(/\Atest/).sort.each do |name|
        count += 1
        one = kind.new
        begin
          one.setup
          one.public_send(name)
          one.teardown
        rescue StandardError => error
          STDERR.puts("#{name}: #{error.class}: #{error.message}")
          return false
        end
      end
    end
    count > 0
  end
end
