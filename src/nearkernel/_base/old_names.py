"""Old public names: where each is now, and the release that removes the old one."""

_MOVED_IN_0_3 = {  # (module then, module now): names
    ("", "models"): ("CubicModel"),
    ("", "statistics"): ("phase_diagram"),
    ("", "theory"): ("learning_rate_phase one_step_features"),
    ("activations", "results"): ("Erf Gaussian Gelu Moments Monomial PiecewiseLinear Series Sine"),
    ("activations", "theory"): ("dual moments"),
    ("dynamics", "forecasts"): ("regime"),
    ("dynamics", "results"): (
        "AbstractSolution CatapultPath FeatureLearning FunctionSpaceSolution Inspection "
        "KernelMarginResult LeaveOneOut MachineSolution MarginPath MaxMarginResult ModesResult "
        "MovementResult NearlyKernelSolution NystromSolution OneStepBoundResult "
        "OneStepFeaturesResult Phase Prediction Projectors QueryBoundResult "
        "RecursiveFeaturesResult RegimeResult Ridges SGDSolution SampleSpaceRun Solution "
        "StationarySGD Trajectory Tuned TunedKernel Unbounded Verdict"
    ),
    ("dynamics", "theory"): (
        "OneStepNetwork average_gradient_outer_product catapult first_gradient "
        "fluctuation_observables gradient_moment has_kinks implicit_minimizer implicit_potential "
        "kernel_margin learning_rate_phase margin_flow max_margin mode_catapult movement "
        "normalized_margin one_step_bound one_step_features output_modes phase_boundaries "
        "phase_of query_bound recursive_features sample_space_descent sgd_stationary "
        "sgd_until_stationary step_change subspace_overlap"
    ),
    ("examples", "theory"): ("lipschitz_code lipschitz_decode sawtooth walk_density zaslavsky"),
    ("geometry", "results"): (
        "AbstractOperator CellResult ClassSplit CollapseResult CrossingsResult Eigenpairs "
        "EntropyBounds FeatureSplit LipschitzBoundsResult RegionBoundsResult RegionsResult "
        "SpectralDensityResult StablePairResult"
    ),
    ("geometry", "theory"): (
        "LipschitzExtension Region breakpoints cell crossings ellipsoid_entropy ellipsoid_width "
        "feature_classes gauss_newton_classes gradient_classes gradient_share kernel_axes "
        "last_layer lipschitz_bounds lipschitz_entropy mean_boundary mean_crossings "
        "measure_boundary measure_crossings projection_dims random_projection region_bounds "
        "sampling_width set_entropy set_packing sobolev_axes stable_pair"
    ),
    ("kernels", "results"): ("Multiple NormBoundedResult PositivityResult Product RademacherResult Sum"),
    ("kernels", "theory"): (
        "DPP EmpiricalDDNTK EmpiricalDNTK Mercer RKHSFunction feature_map gp_samples mercer "
        "norm_bounded positivity rademacher representer"
    ),
    ("models", "results"): (
        "AbstractDerivatives FeatureDerivatives FunctionModel ModelDerivatives NetworkModel Taylor TorchModel"
    ),
    ("models", "theory"): ("DiagonalNetwork MultiIndexPolynomial effective_features"),
    ("scale", "results"): ("Cost KernelStore PlanResult Rates"),
    ("statistics", "forecasts"): ("forecast learning_curve power_law_task sphere_task"),
    ("statistics", "results"): (
        "Adapted Comparison ComputeOptimalResult ConcentrationResult Contribution "
        "CoordinateCheckResult CriticalResult DeepLinearPosteriorResult DepthLossesResult "
        "Estimate ExpectedLoss Extrapolation FiniteForecast FinitePosterior Fluctuations "
        "GaussianProductResult GaussianityResult GradientSpreadResult Guarantee "
        "InputGradientResult Kernels KinkForecast LargestEigenvalueResult Layer "
        "LearningCurveResult LearningRatesResult MarchenkoPasturResult ModelRow ModelTable "
        "Neurons PhaseDiagramResult PosteriorDraws PosteriorResult Propagation ReluMomentsResult "
        "ReluNTKResult RichForecast SampledForecast SampledSpectrumResult ScalingExponentsResult "
        "SmallestEigenvalueResult Spread StandardErrors StochasticForecast TrainedCurve "
        "WideForecast WidthEvidenceResult"
    ),
    ("statistics", "theory"): (
        "BlockFlow adapted_mean average_variance best_prior_var compute_optimal concentration "
        "convergence_guarantee deep_linear_log_evidence deep_linear_posterior deep_linear_table "
        "depth_losses effective_depth extrapolated gaussian_product gaussianity gradient_spread "
        "gram_spectrum input_gradient kernel_bulk largest_eigenvalue limiting_scale "
        "marchenko_pastur matrix_bernstein matrix_chernoff matrix_chernoff_below "
        "measure_posterior observables path_sum population_law relu_moments relu_ntk "
        "relu_ntk_change sample_law sampled_spectrum scaling_exponents smallest_eigenvalue "
        "trained_observables width_evidence"
    ),
}
_RENAMED_IN_0_3 = {  # removed in 0.5
    "statistics.Clouds": "MeanField",
    "statistics.SampledNeurons": "FiniteWidth",
}
_RENAMED_IN_0_2 = {  # removed in 0.4
    "phase": "theory.learning_rate_phase",
    "dynamics.MaxMargin": "results.MaxMarginResult",
    "dynamics.Movement": "results.MovementResult",
    "dynamics.OneStepFeatures": "results.OneStepFeaturesResult",
    "dynamics.RecursiveFeatures": "results.RecursiveFeaturesResult",
    "dynamics.phase": "theory.learning_rate_phase",
    "dynamics.walk_density": "theory.walk_density",
    "geometry.Collapse": "results.CollapseResult",
    "geometry.Crossings": "results.CrossingsResult",
    "geometry.RegionBounds": "results.RegionBoundsResult",
    "geometry.Regions": "results.RegionsResult",
    "geometry.SpectralDensity": "results.SpectralDensityResult",
    "geometry.StablePair": "results.StablePairResult",
    "geometry.lipschitz_code": "theory.lipschitz_code",
    "geometry.lipschitz_decode": "theory.lipschitz_decode",
    "geometry.sawtooth": "theory.sawtooth",
    "geometry.zaslavsky": "theory.zaslavsky",
    "kernels.Positivity": "results.PositivityResult",
    "kernels.Scaled": "results.Multiple",
    "statistics.ComputeOptimal": "results.ComputeOptimalResult",
    "statistics.Concentration": "results.ConcentrationResult",
    "statistics.CoordinateCheck": "results.CoordinateCheckResult",
    "statistics.Critical": "results.CriticalResult",
    "statistics.DeepLinearPosterior": "results.DeepLinearPosteriorResult",
    "statistics.DepthLosses": "results.DepthLossesResult",
    "statistics.Forecast": "results.WideForecast",
    "statistics.GaussianProduct": "results.GaussianProductResult",
    "statistics.Gaussianity": "results.GaussianityResult",
    "statistics.GradientSpread": "results.GradientSpreadResult",
    "statistics.InputGradient": "results.InputGradientResult",
    "statistics.LargestEigenvalue": "results.LargestEigenvalueResult",
    "statistics.LearningCurve": "results.LearningCurveResult",
    "statistics.LearningRates": "results.LearningRatesResult",
    "statistics.MarchenkoPastur": "results.MarchenkoPasturResult",
    "statistics.PhaseDiagram": "results.PhaseDiagramResult",
    "statistics.Posterior": "results.PosteriorResult",
    "statistics.ReluNTK": "results.ReluNTKResult",
    "statistics.SampledSpectrum": "results.SampledSpectrumResult",
    "statistics.ScalingExponents": "results.ScalingExponentsResult",
    "statistics.SmallestEigenvalue": "results.SmallestEigenvalueResult",
    "statistics.WidthEvidence": "results.WidthEvidenceResult",
}


def _table() -> dict[str, dict[str, tuple[str, str]]]:
    table: dict[str, dict[str, tuple[str, str]]] = {}
    for (room, new), names in _MOVED_IN_0_3.items():
        for name in names.split():
            table.setdefault(f"nearkernel.{room}".rstrip("."), {})[name] = (f"{new}.{name}", "0.5")
    for renamed, release in ((_RENAMED_IN_0_2, "0.4"), (_RENAMED_IN_0_3, "0.5")):
        for old, new in renamed.items():
            room, _, name = old.rpartition(".")
            table.setdefault(f"nearkernel.{room}".rstrip("."), {})[name] = (new, release)
    return table


OLD = _table()  # module: {old name: (new name, release that removes the old one)}
