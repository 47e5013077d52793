//! Bills of turns: told, priced, estimated, unknown.

use super::*;
use autopilot_agents::{ModelTokens, TokenCount};
use autopilot_core::config::Price;

fn session_cost(usd: f64, input: u64) -> AgentUsage {
    AgentUsage {
        tokens: TokenCount { input, output: 1, cached: 0 },
        tokens_scope: Scope::Run,
        ..AgentUsage::new(Scope::Session, TokenCount::default(), Some(usd))
    }
}

fn session_tokens(input: u64, cached: u64, output: u64) -> AgentUsage {
    AgentUsage::new(Scope::Session, TokenCount { input, output, cached }, None)
}

#[test]
fn another_session_than_was_asked_for_owes_all_it_counts() {
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList::default(), None);
    billing.opened("s-0");
    billing.end(Some(&session_cost(1.0, 10)), None, CostDoubt::Perhaps, 0);
    billing.begin(Some("s-0"), None, PriceList::default(), None);
    billing.opened("s-1");
    billing.end(Some(&session_cost(1.5, 10)), None, CostDoubt::Perhaps, 0);
    assert_eq!(billing.owed().0.usd, Micros(2_500_000));
}

#[test]
fn a_session_that_goes_on_owes_only_what_its_count_rises_by() {
    let mut first = Billing::default();
    first.begin(None, None, PriceList::default(), None);
    first.opened("s");
    first.end(Some(&session_cost(0.12, 10)), None, CostDoubt::Perhaps, 0);
    let (bill, total) = first.owed();
    assert_eq!((bill.usd, bill.tokens_in), (Micros(120_000), 10));
    let total = *total.unwrap();
    assert_eq!((total.session.as_str(), total.usd), ("s", Some(Micros(120_000))));

    // Another attempt, perhaps of another process: it knows only what is durable.
    let mut next = Billing::default();
    next.begin(Some("s"), Some(&total), PriceList::default(), None);
    next.end(Some(&session_cost(0.15, 7)), Some("s"), CostDoubt::Perhaps, 0);
    let (bill, total) = next.owed();
    assert_eq!((bill.usd, bill.tokens_in), (Micros(30_000), 7));
    assert_eq!(total.unwrap().usd, Some(Micros(150_000)));
}

#[test]
fn a_session_that_goes_on_from_an_older_count_owes_the_rise_of_that() {
    let known = SessionTotal { session: "s".into(), usd: Some(Micros(500_000)), tokens: None };
    let of_turn = |count: Option<&AgentUsage>| {
        let usage = session_cost(0.75, 7);
        let resumed = (Some("s"), count);
        Billing::of_turn(resumed, Some(&known), PriceList::default(), Some("s"), &usage)
            .owed()
            .0
            .usd
    };
    assert_eq!(of_turn(Some(&session_cost(0.125, 1))), Micros(625_000));
    assert_eq!(of_turn(Some(&session_cost(0.0, 0))), Micros(750_000), "it forgot all of it");
    assert_eq!(of_turn(None), Micros(250_000), "its files tell nothing");
}

#[test]
fn the_second_turn_of_an_attempt_owes_the_rise_and_a_new_session_all_of_it() {
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList::default(), None);
    billing.opened("s");
    billing.end(Some(&session_cost(0.10, 1)), None, CostDoubt::Perhaps, 0);
    billing.begin(Some("s"), None, PriceList::default(), None);
    billing.end(Some(&session_cost(0.25, 1)), None, CostDoubt::Perhaps, 0);
    assert_eq!(billing.owed().0.usd, Micros(250_000));
    billing.begin(None, None, PriceList::default(), None);
    billing.opened("t");
    billing.end(Some(&session_cost(0.5, 1)), None, CostDoubt::Perhaps, 0);
    assert_eq!(billing.owed().0.usd, Micros(750_000));
}

#[test]
fn tokens_without_a_cost_are_billed_by_the_price_of_the_rise() {
    let price = Price { input: 2.0, output: 10.0, cached: Some(0.5) };
    let total = SessionTotal {
        session: "t".into(),
        usd: None,
        tokens: Some(TokenCount { input: 1000, output: 100, cached: 0 }),
    };
    let mut billing = Billing::default();
    billing.begin(
        Some("t"),
        Some(&total),
        PriceList { own: Some(price), ..PriceList::default() },
        None,
    );
    let AttemptWord::Counted { bill, total } = billing.hear(&session_tokens(1600, 400, 150)) else {
        panic!("the session's count is told along");
    };
    // 200 fresh, 400 cached, 50 out.
    assert_eq!(bill.usd, Micros(400 + 200 + 500));
    assert_eq!((bill.tokens_in, bill.cached, bill.unpriced), (600, 400, false));
    assert_eq!(total.tokens.unwrap().input, 1600);
}

#[test]
fn what_has_no_price_is_said_to_have_none() {
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList::default(), None);
    let AttemptWord::Bill(bill) = billing.hear(&session_tokens(5, 0, 5)) else {
        panic!("without a session there is no count of one");
    };
    assert!(bill.unpriced && bill.usd == Micros(0) && bill.tokens_in == 5);
    // A turn that tells nothing after one that told something.
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList::default(), None);
    billing.end(Some(&session_cost(0.1, 1)), None, CostDoubt::Perhaps, 0);
    billing.begin(None, None, PriceList::default(), None);
    billing.end(None, None, CostDoubt::Perhaps, 0);
    let bill = billing.owed().0;
    assert_eq!((bill.usd, bill.unpriced), (Micros(100_000), true));
}

#[test]
fn what_nobody_told_is_estimated_and_never_above_what_it_was_given() {
    let given = Micros(500_000);
    let ended = |usage: Option<&AgentUsage>, ms| {
        let mut billing = Billing::default();
        billing.begin(None, None, PriceList::default(), Some(given));
        billing.end(usage, None, CostDoubt::Perhaps, ms);
        assert!(billing.note().is_some());
        billing.owed().0
    };
    let bill = ended(None, 5_000);
    assert_eq!((bill.usd, bill.estimated, bill.unpriced), (Micros(0), Micros(100_000), false));
    assert_eq!(ended(None, 600_000).counted(), given, "not more than was reserved");
    // Nor do tokens without a price tell it.
    let bill = ended(Some(&session_tokens(5, 0, 5)), 5_000);
    assert_eq!((bill.usd, bill.estimated, bill.tokens_in), (Micros(0), Micros(100_000), 5));
    // The cost of an agent that never reached a model is unknown, but nothing is owed.
    for (given, worked) in [(Some(given), CostDoubt::No), (None, CostDoubt::Perhaps)] {
        let mut billing = Billing::default();
        billing.begin(None, None, PriceList::default(), given);
        billing.end(None, None, worked, 5_000);
        let bill = billing.owed().0;
        assert_eq!((bill.counted(), bill.unpriced), (Micros(0), true));
        assert_eq!(billing.note(), None);
    }
    // An agent that reported its cost owes that.
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList::default(), Some(given));
    billing.end(Some(&session_cost(0.1, 1)), None, CostDoubt::Perhaps, 5_000);
    assert_eq!(billing.owed().0.counted(), Micros(100_000));
}

#[test]
fn a_cost_that_the_agent_does_not_know_is_priced_or_called_unknown() {
    let part = |model: &str, input| ModelTokens {
        model: model.to_owned(),
        tokens: TokenCount { input, output: 0, cached: 0 },
    };
    let usage = AgentUsage {
        unpriced: vec![part("local", 1_000_000)],
        ..AgentUsage::new(Scope::Session, TokenCount::default(), Some(0.25))
    };
    let price = Price { input: 2.0, output: 8.0, cached: None };
    let by_model = BTreeMap::from([("local".to_owned(), price)]);
    let billed = |prices: PriceList| {
        let mut billing = Billing::default();
        billing.begin(None, None, prices, None);
        billing.end(Some(&usage), Some("s"), CostDoubt::Perhaps, 0);
        (billing.owed().0, billing.owed().1)
    };
    let (bill, total) = billed(PriceList { own: None, by_model });
    assert_eq!((bill.usd, bill.unpriced), (Micros(2_250_000), false));
    assert_eq!(total.unwrap().usd, Some(Micros(2_250_000)), "a resumed session owes the rise");
    let (bill, _) = billed(PriceList::default());
    assert_eq!((bill.usd, bill.unpriced), (Micros(250_000), true), "the known part alone");
    // Tokens of the last call alone are not what a turn costs.
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList { own: Some(price), ..PriceList::default() }, None);
    let part = AgentUsage { is_partial: true, ..session_tokens(1_000_000, 0, 0) };
    billing.end(Some(&part), None, CostDoubt::Perhaps, 0);
    assert!(billing.owed().0.unpriced);
}

#[test]
fn a_figure_above_what_the_turn_was_given_is_an_excess() {
    let mut billing = Billing::default();
    billing.begin(None, None, PriceList::default(), Some(Micros(100_000)));
    let _told = billing.hear(&session_cost(0.1, 1));
    assert_eq!(billing.excess(), None);
    let _told = billing.hear(&session_cost(0.15, 1));
    assert_eq!(billing.excess(), Some((Micros(100_000), Micros(150_000))));
}
