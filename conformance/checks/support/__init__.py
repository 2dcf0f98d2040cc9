"""Helpers shared by the checks of several areas, with a table that names the helper for each kind of claim.

    the claim is about                         write
    -----------------------------------------  ----------------------------------------------------------------------
    whether the server answers at all          expect(reply).answered()
    output values                              expect(reply).tensors(expected)
    the form an output comes in                expect(reply).forms({name: "binary"})
    faults in the structure of an answer       expect(reply).free_of(kinds of `wire.finding`)
    binary data, read or written correctly     controls.expect_read and expect_written, of a role or a deployed model
    the two lengths in an answer's headers     framing.expect_framed(reply)
    a document and its members                 documents.expect_fits_schema and expect_document
    a request that has to be refused           a `wrong_requests.Fault` in a table of the module's `REFUSALS`
    a server that must stay alive              expect.refusals.expect_alive
    classes                                    classes.ClassifiedAnswer.ask(...).expect_rule(...)
    metadata and health                        target.describe(model) and target.ask_health(subject, model)
    outputs of a request, over HTTP or gRPC    controls.expect_right(target, model, tensors, send, want, outputs)
    inputs that show how a server read them    inputs.choose_revealing_inputs, by changed_tensors
    what a client sends, reads or refuses      client_rows for the row, clients.expectations for the body
    tensors that Hypothesis draws              exploring.explore(strategy, expectation)
    tensors drawn by Hypothesis, kept as data  generated.expect_generated(model, sending, expectation)
    one row for each datatype                  datatypes.make_datatype_rows

`expect.unmet` explains how a check body attributes a failure to one requirement: `is_met`, `attribute_to`, `block_if`,
`BlockedError`. If a server misreads and miswrites bytes in the same way, an identity model still returns the sent
values. A claim about bytes therefore uses binary data on one side and JSON on the other, or a model that does not return
its inputs. `controls` decides whose fault a wrong answer is, for both transports and for any model.

A function named `expect_...` raises `UnmetError` if the claim is not met; `is_...` and `has_...` return a bool.
"""
