"""The operators' schemas: the one list of their options, their order and their defaults."""

import inspect
import types


def named(operator, args, options=None):
    """A call's arguments by their names, defaults included."""
    arguments = operator._schema.arguments
    call = {argument.name: argument.default_value for argument in arguments if argument.has_default_value()}
    call.update(zip((argument.name for argument in arguments), args), **(options or {}))
    return types.SimpleNamespace(**call)


def takes_options_of(operator):
    """For a function that hands **options on to an operator: help() shows which there are."""

    def decorate(function):
        own = inspect.signature(function).parameters
        given = [parameter for parameter in own.values() if parameter.kind != inspect.Parameter.VAR_KEYWORD]
        options = [
            inspect.Parameter(argument.name, inspect.Parameter.KEYWORD_ONLY, default=argument.default_value)
            for argument in operator._schema.arguments
            if argument.has_default_value() and argument.name not in own
        ]
        function.__signature__ = inspect.Signature(given + options)
        return function

    return decorate
