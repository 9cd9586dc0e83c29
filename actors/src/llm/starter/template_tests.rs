use super::*;

fn message(role: &'static str, content: &str) -> TemplateMessage {
    TemplateMessage {
        role,
        content: content.to_owned(),
    }
}

fn rendered(source: &str) -> Result<String, ModelError> {
    ChatTemplate::new(Some(source), "<s>", "</s>")?
        .render(&[message("system", "Be kind."), message("user", "  Hello ")])
}

#[test]
fn a_file_without_template_gets_chatml() {
    let template = ChatTemplate::new(None, "", "").unwrap();
    assert_eq!(
        template.render(&[message("user", "Hi")]).unwrap(),
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn a_template_that_does_not_compile_gives_way_to_chatml() {
    assert!(
        rendered("{% for %}")
            .unwrap()
            .starts_with("<|im_start|>system\nBe kind.")
    );
}

#[test]
fn the_words_of_the_hub_are_known() {
    let source = "{%- for message in messages %}
    {%- if message['role'].startswith('sys') %}
        {{- bos_token + message.content.split(' ')[0].upper() }}
    {%- else %}
        {{- message['content'].strip() + eos_token }}
        {%- for key, value in message.items() %}
            {{- key }}
            {%- break %}
        {%- endfor %}
    {%- endif %}
{%- endfor %}
{%- if tools is none and add_generation_prompt %}{{ {'a': [1, 'x']} | tojson }}{% endif %}";
    assert_eq!(
        rendered(source).unwrap(),
        "<s>BEHello</s>role{\"a\": [1, \"x\"]}"
    );
}

#[test]
fn an_exception_is_an_error_with_its_text() {
    let error = rendered("{{ raise_exception('roles must alternate') }}").unwrap_err();
    assert!(
        error.to_string().contains("roles must alternate"),
        "{error}"
    );
}

#[test]
fn the_date_is_told_and_an_unknown_format_is_no_panic() {
    let year = rendered("{{ strftime_now('%Y') }}").unwrap();
    assert!(year.parse::<u32>().unwrap() >= 2024);
    assert!(rendered("{{ strftime_now('%Q%') }}").is_err());
}

#[test]
fn an_endless_template_runs_out_of_fuel() {
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}";
    assert!(rendered(source).is_err());
}

#[test]
fn a_template_cannot_write_without_end() {
    let source = "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}";
    assert!(rendered(source).is_err());
}
