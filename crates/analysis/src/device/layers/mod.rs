//! Which layer (`nn.Module`) each kernel belongs to, and how that is known: launched inside it, replayed from a graph whose
//! capture was seen (`capture`), or part of a sequence of kernels that was launched inside layers elsewhere (`sequence`).

mod capture;
mod sequence;

use crate::device::gpu::LayerRow;
use timeline::{Around, NameIndex, SliceKind, Timeline, WorkKind};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Direct,
    BySequence,
    ByCapture,
}

/// Kernels that no layer was found for, by what is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unnamed {
    /// All kernels, with a layer or without.
    pub kernels: u64,
    /// Their launch was not recorded.
    pub without_launch: u64,
    /// Of CUDA graphs whose capture was not seen together with layers.
    pub of_graphs: u64,
    /// Launched outside all recorded layers, in no sequence that was launched inside one.
    pub outside: u64,
    /// Whether there are layers at all.
    pub any_layer: bool,
}

impl Unnamed {
    pub fn count(&self) -> u64 {
        self.without_launch + self.of_graphs + self.outside
    }
}

#[derive(Debug, Default)]
pub struct Layers {
    /// By place of the work; the name plus one, 0: none. Empty without layers.
    name: Vec<u32>,
    how: Vec<u8>,
}

impl Layers {
    pub fn find(timeline: &Timeline) -> Layers {
        let slices = &timeline.slices;
        if !(0..slices.len()).any(|index| slices.kind(index) == SliceKind::Layer) {
            return Layers::default();
        }
        let count = timeline.gpu.work.len();
        let mut layers = Layers { name: vec![0; count], how: vec![0; count] };
        let mut calibrated = sequence::Calibrated::default();
        layers.direct(timeline, &mut calibrated);
        capture::name(timeline, &mut layers);
        calibrated.name(timeline, &mut layers);
        layers
    }

    pub fn of(&self, work: usize) -> Option<NameIndex> {
        self.name.get(work).filter(|name| **name > 0).map(|name| NameIndex(name - 1))
    }

    fn set(&mut self, work: usize, name: NameIndex, how: How) {
        self.name[work] = name.0 + 1;
        self.how[work] = how as u8;
    }

    /// Kernels whose launch call lies in a layer of its thread belong to the innermost; those of an outermost layer, in
    /// order, are a sequence that may be met again.
    fn direct(&mut self, timeline: &Timeline, calibrated: &mut sequence::Calibrated) {
        let work = &timeline.gpu.work;
        let mut linked = work.linked().iter().map(|index| *index as usize).peekable();
        for track in &timeline.tracks {
            let mut around = Around::new(timeline, track);
            while let Some((call, open)) = around.next_call() {
                let mut layers = open.filter(|index| timeline.slices.kind(*index) == SliceKind::Layer);
                let root = layers.next();
                let layer = layers.last().or(root).map(|index| timeline.slices.get(index).name);
                while let Some(index) = linked.next_if(|index| work.launch(*index).is_some_and(|launch| launch <= call))
                {
                    if work.launch(index) == Some(call)
                        && work.kind(index) == WorkKind::Kernel
                        && let (Some(root), Some(layer)) = (root, layer)
                    {
                        self.set(index, layer, How::Direct);
                        calibrated.add(root, work.name[index], layer);
                    }
                }
            }
            calibrated.end();
        }
    }

    /// None: layers were not asked for.
    pub fn unnamed(&self, timeline: &Timeline) -> Option<Unnamed> {
        timeline.info.settings.layers.filter(|asked| *asked)?;
        let work = &timeline.gpu.work;
        let mut unnamed = Unnamed { any_layer: !self.name.is_empty(), ..Unnamed::default() };
        for index in (0..work.len()).filter(|index| work.kind(*index) == WorkKind::Kernel) {
            unnamed.kernels += 1;
            match self.of(index) {
                Some(_) => {}
                None if work.launch(index).is_none() => unnamed.without_launch += 1,
                None if work.more(index).graph != 0 => unnamed.of_graphs += 1,
                None => unnamed.outside += 1,
            }
        }
        Some(unnamed)
    }

    pub fn rows(&self, timeline: &Timeline) -> Vec<LayerRow> {
        let work = &timeline.gpu.work;
        let mut rows: Vec<Option<LayerRow>> = vec![None; timeline.names.len()];
        for index in (0..self.name.len()).filter(|index| work.kind(*index) == WorkKind::Kernel) {
            let Some(name) = self.of(index) else { continue };
            let empty = LayerRow { name, total_ns: 0, kernels: 0, direct: 0, by_sequence: 0, by_capture: 0 };
            let Some(row) = rows.get_mut(name.0 as usize) else { continue };
            let row = row.get_or_insert(empty);
            row.kernels += 1;
            row.total_ns = row.total_ns.saturating_add(work.dur[index]);
            match self.how[index] {
                how if how == How::Direct as u8 => row.direct += 1,
                how if how == How::BySequence as u8 => row.by_sequence += 1,
                _ => row.by_capture += 1,
            }
        }
        let mut rows: Vec<LayerRow> = rows.into_iter().flatten().collect();
        rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.name));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kernel=layer` in the order of the work, with how it is known.
    fn named(text: &str) -> String {
        let timeline = Timeline::from_text(text).unwrap();
        let layers = Layers::find(&timeline);
        let one = |index: usize| {
            let how = ["", "~", "*"][layers.how.get(index).map_or(0, |how| usize::from(*how))];
            let layer = layers.of(index).map_or("-", |name| timeline.names.text(name));
            format!("{}={layer}{how}", timeline.names.text(timeline.gpu.work.get(index).name))
        };
        (0..timeline.gpu.work.len()).map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_kernel_belongs_to_the_innermost_layer_around_its_launch() {
        let said = named(
            "track main
             layer model 0..100us
             layer model.attention 10us..50us
             api cudaLaunchKernel 20us..22us\n stream 7\n kernel qk 25us..200us
             api cudaLaunchKernel 60us..62us\n kernel norm 200us..210us
             api cudaLaunchKernel 110us..112us\n kernel other 210us..220us
             track worker
             api cudaLaunchKernel 20us..22us corr 90\n stream 8\n kernel theirs 25us..26us",
        );
        assert_eq!(said, "qk=model.attention norm=model other=- theirs=-");
    }

    #[test]
    fn a_sequence_seen_in_layers_is_known_again_without_them() {
        let step = "api cudaLaunchKernel 1us..2us\n kernel a 3us..4us\n api cudaLaunchKernel 5us..6us\n kernel b 7us..8us
             api cudaLaunchKernel 9us..10us\n kernel a 11us..12us\n api cudaLaunchKernel 13us..14us\n kernel c 15us..16us";
        let said = named(&format!(
            "track main\n stream 7\n repeat 1 every 1s\n layer m 0..20us\n layer m.one 0..8us\n layer m.two 8us..12us\n {step}\n end
             repeat 2 every 100us\n api cudaLaunchKernel 100us..101us\n kernel sampling 102us..103us\n end
             repeat 1 every 1s
             api cudaLaunchKernel 301us..302us\n kernel a 303us..304us\n api cudaLaunchKernel 305us..306us\n kernel b 307us..308us
             api cudaLaunchKernel 309us..310us\n kernel a 311us..312us\n api cudaLaunchKernel 313us..314us\n kernel c 315us..316us
             api cudaLaunchKernel 321us..322us\n kernel a 323us..324us\n api cudaLaunchKernel 325us..326us\n kernel c 327us..328us
             end"
        ));
        assert_eq!(said, "a=m.one b=m.one a=m.two c=m sampling=- sampling=- a=m.one~ b=m.one~ a=m.two~ c=m~ a=- c=-");
    }

    #[test]
    fn sequences_that_several_layers_have_name_only_what_they_agree_on() {
        let kernels = |offset: u64, names: [&str; 4]| {
            let line = |(at, name): (usize, &&str)| {
                let begin = offset + 2 * at as u64;
                format!(
                    "api cudaLaunchKernel {begin}us..{}us\n kernel {name} {}us..{}us\n",
                    begin + 1,
                    begin + 1,
                    begin + 2
                )
            };
            names.iter().enumerate().map(line).collect::<String>()
        };
        let names = ["a", "b", "c", "d"];
        let said = named(&format!(
            "track main\n stream 7\n layer x 0..9us\n layer x.end 6us..9us\n {}layer y 10us..19us\n layer x.end 16us..19us\n {}{}",
            kernels(0, names),
            kernels(10, names),
            kernels(30, names)
        ));
        assert!(said.ends_with("a=- b=- c=- d=x.end~"), "{said}");
    }

    #[test]
    fn what_has_no_layer_is_counted_by_what_is_missing() {
        let text = "layers on\n track main\n layer m 0..9us
             api cudaLaunchKernel 1us..2us\n stream 7\n kernel named 3us..4us
             api cudaLaunchKernel 11us..12us\n kernel outside 13us..14us
             api cudaGraphLaunch 21us..22us\n kernel a 23us..24us graph 5 node 1\n kernel b 24us..25us graph 5 node 2
             kernel lost 31us..32us corr 99";
        let unnamed = |text: &str| {
            let timeline = Timeline::from_text(text).unwrap();
            Layers::find(&timeline).unnamed(&timeline)
        };
        let expected = Unnamed { kernels: 5, without_launch: 1, of_graphs: 2, outside: 1, any_layer: true };
        assert_eq!(unnamed(text), Some(expected));
        assert_eq!(expected.count(), 4);
        let none = unnamed(&text.replace("layer m 0..9us", "")).unwrap();
        assert_eq!((none.outside, none.any_layer), (2, false));
        assert_eq!(unnamed(&text.replace("layers on", "")), None);
    }

    #[test]
    fn a_replayed_graph_has_the_layers_of_its_capture() {
        let said = named(
            "track main
             api cudaStreamBeginCapture 0..1us
             layer m.one 1us..5us
             api cudaLaunchKernel 2us..3us
             layer m.two 6us..12us
             api cudaLaunchKernel 7us..8us
             api cudaMemcpyAsync 8us..9us
             api cudaLaunchKernel 10us..11us
             api cudaStreamEndCapture 13us..14us
             api cudaGraphLaunch 20us..21us
             stream 7
             kernel a 22us..23us graph 5 node 1
             kernel b 23us..24us graph 5 node 2
             kernel c 24us..25us graph 5 node 4
             api cudaGraphLaunch 30us..31us
             kernel x 32us..33us graph 6 node 1
             layer m 40us..50us
             api cudaGraphLaunch 41us..42us
             kernel a 43us..44us graph 5 node 1
             kernel b 44us..45us graph 5 node 2
             kernel c 45us..46us graph 5 node 4",
        );
        assert_eq!(said, "a=m.one* b=m.two* c=m.two* x=- a=m.one* b=m.two* c=m.two*");
    }
}
