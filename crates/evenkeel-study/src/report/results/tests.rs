//! Figures gathered from results: worst cases and halves.

use super::*;

fn design() -> Design {
    let text = "name = 'x'\n[[subject]]\nname = 's'\nmodel = 'm'\ndata = 'd'\npath = 'p'\n[[attack]]\nkind = 'pgd'\n[[attack]]\nkind = 'mim'\n\
                [[attack]]\nkind = 'fgsm'\nepsilon_255 = 8\n[[attack]]\nkind = 'cw'\ntarget = 'permuted'";
    crate::experiment::tests::design(text)
}

fn seen(id: &str, score: f64, loss: f64, right: bool) -> ImageResult {
    let tally = Tally::Class { truth: 1, said: usize::from(right), rank: None, confidence: None };
    ImageResult {
        id: id.into(),
        draw: 0,
        score,
        loss,
        bare_score: score,
        to_target: None,
        bare_to_target: None,
        bare: tally.clone(),
        tally,
        objective: None,
        term_gradient: None,
        defence: (Passes::default(), Clock::default()),
        answer_seconds: 0.0,
    }
}

/// Larger budgets and targeted attacks do not count; of equal scores the higher loss does; and no single attack leaves less than the worst case.
#[test]
fn the_worst_case_is_the_worst() {
    let design = design();
    let results = |pgd: [ImageResult; 2], mim: [ImageResult; 2]| {
        let far = [seen("a", -1.0, 9.0, false), seen("b", -1.0, 9.0, false)];
        let columns = [pgd.to_vec(), mim.to_vec(), far.to_vec(), far.to_vec()];
        let cells = (1..).zip(columns).map(|(column, all)| ((0, column, 0), all)).collect();
        Results { design: &design, cells, unlabelled: BTreeMap::default(), known: RefCell::default() }
    };
    let tied = results(
        [seen("a", 0.0, 1.0, true), seen("b", 0.5, 1.0, true)],
        [seen("a", 0.0, 2.0, false), seen("b", 0.7, 9.0, false)],
    );
    assert_eq!((tied.attacks(0), tied.met(0, 0)), (vec![1, 2], 2));
    let losses: Vec<f64> = tied.worst(0, 0).iter().map(|r| r.loss).collect();
    assert_eq!(losses, [2.0, 1.0]);
    // image by image half of the answers are right, but of mim's none
    assert_eq!(tied.worst_figure(0, 0).unwrap().value, 0.0);
    assert_eq!(tied.figure(0, 1, 0).unwrap().value, 1.0);
}
