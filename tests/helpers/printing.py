"""A kernel whose threads print a line each."""

PRINTING = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[8] = {104, 105, 10};
.visible .entry k()
{
.reg .b64 %rd<2>;
mov.u64 %rd0, text;
{ .param .b64 f; st.param.b64 [f], %rd0; .param .b64 a; st.param.b64 [a], 0; .param .b32 r;
call.uni (r), vprintf, (f, a); }
ret;
}
"""
